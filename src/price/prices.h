/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dated prices of prices/prices.yaml, or of a file with the same form. Every price has a source and a
 * date. The form of the file: docs/how-to/price-a-run.md.
 */
#ifndef PRICE_PRICES_H
#define PRICE_PRICES_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

/* Prices that are older than this carry a warning. */
enum { PRICE_OLD_DAYS = 90 };

struct price_origin {
	const char *source; /* the source's title */
	const char *date;   /* YYYY-MM-DD, or YYYY-MM: the first day of the month */
	int line;
};

struct price_electricity {
	const char *name;
	double dollars_per_kwh, pue; /* pue: energy of the whole data center over that of its machines */
	struct price_origin origin;
};

struct price_gpu {
	const char *sku; /* beginning of the name of a SKU row, up to a '-' */
	double low, high;
	double years; /* of capital: the price is spread over them; of GPU-hours: 0 */
	struct price_origin origin;
};

struct price_api {
	const char *model;
	double input, output; /* dollars per million tokens */
	double cached_input;  /* equal to input if the file does not give it */
	bool cached_given;
	struct price_origin origin;
};

struct prices; /* owns all texts */
/* `from`: a file; NULL: the built-in prices. BAD_INPUT names file and line. Owner: caller, prices_free. */
enum status prices_load(struct prices **out, const char *from, struct error *err);
/* Like prices_load, but from memory (fuzzed). */
enum status prices_parse(struct prices **out, const char *name, const char *text, size_t size,
			 struct error *err);
void prices_free(struct prices *p);
const char *prices_file(const struct prices *p);
const char *prices_hash(const struct prices *p); /* SHA-256 of the file's bytes, in hex */

const struct price_electricity *prices_electricity(const struct prices *p, size_t *count);
const struct price_api *prices_apis(const struct prices *p, size_t *count);
const struct price_gpu *prices_gpu_hours(const struct prices *p, size_t *count);
/* The row for a SKU; the row with the longest name wins. NULL: none. */
const struct price_gpu *prices_gpu_hour(const struct prices *p, const char *sku);
const struct price_gpu *prices_capital(const struct prices *p, const char *sku);

/* The days from `date` to `today`, both YYYY-MM-DD or YYYY-MM, with or without more text behind. Negative:
 * `date` is later. False: one of them is not a date. */
bool price_age_days(const char *date, const char *today, int *days);
/* Whether the price is older than PRICE_OLD_DAYS on that day. */
bool price_is_old(const struct price_origin *origin, const char *today);
#endif
