/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry as the journal has it: the readings of one source over about a second in one line. */
#ifndef JOURNAL_BLOCK_H
#define JOURNAL_BLOCK_H
#include <jansson.h>
#include "journal/telemetry/series.h"

/* Readings that wait for their line. Zeroed is empty. */
struct block {
	struct series *series;
	size_t count, readings;
};

/* One that cannot be kept, for lack of memory or as older than the one before it, is lost. */
void block_add(struct block *b, const char *source, const char *signal, enum signal_kind kind, uint64_t t_ns,
	       double value);
/* Takes the readings of one source out, as the body of a `telemetry` line; the caller decrefs. NULL: none is
 * left. */
json_t *block_take(struct block *b);
void block_release(struct block *b);

/*
 * Adds what a `telemetry` body tells to the array of series, shift_ns later: a block, or a line of one signal
 * as schema 1 had it. What has a wrong form is passed over, and *err untouched. NO_RESOURCE alone is an
 * error.
 */
enum status block_read(const json_t *body, struct series **series, size_t *count, uint64_t shift_ns,
		       struct error *err);
enum signal_kind block_kind(const json_t *object); /* by its "kind"; a gauge where it has none */
#endif
