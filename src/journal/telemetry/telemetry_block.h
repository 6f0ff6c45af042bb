/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry as the journal has it: the readings of one source over about a second in one line. */
#ifndef JOURNAL_TELEMETRY_TELEMETRY_BLOCK_H
#define JOURNAL_TELEMETRY_TELEMETRY_BLOCK_H
#include <jansson.h>
#include "journal/telemetry/series.h"

/* Readings that wait for their line. Zeroed is empty. */
struct telemetry_block {
	struct series *series;
	size_t count, readings;
};

/* One that cannot be kept, for lack of memory or as older than the one before it, is lost. */
void telemetry_block_add(struct telemetry_block *b, const char *source, const char *signal,
			 enum signal_kind kind, uint64_t t_ns, double value);
/* Takes the readings of one source out, as the body of a `telemetry` line; the caller decrefs. NULL: none is
 * left. */
json_t *telemetry_block_take(struct telemetry_block *b);
void telemetry_block_release(struct telemetry_block *b);

/*
 * Adds what a `telemetry` body tells to the array of series, shift_ns later: a block, or a line of one signal
 * as schema 1 had it. What has a wrong form is passed over, and *err untouched. NO_RESOURCE alone is an
 * error.
 */
enum status telemetry_block_read(const json_t *body, struct series **series, size_t *count, uint64_t shift_ns,
				 struct error *err);
enum signal_kind telemetry_block_kind(const json_t *object); /* by its "kind"; a gauge where it has none */
#endif
