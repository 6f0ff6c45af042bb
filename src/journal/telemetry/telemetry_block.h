/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry in the journal's form: one line holds the readings of one source over about a second. */
#ifndef JOURNAL_TELEMETRY_TELEMETRY_BLOCK_H
#define JOURNAL_TELEMETRY_TELEMETRY_BLOCK_H
#include <jansson.h>
#include "journal/telemetry/series.h"

/* Readings that wait for their line. Valid and empty when zeroed. */
struct telemetry_block {
	struct series *series;
	size_t count, readings;
};

/* Adds a reading. It is lost without memory, or if it is older than the reading before it. */
void telemetry_block_add(struct telemetry_block *b, const char *source, const char *signal,
			 enum signal_kind kind, uint64_t t_ns, double value);
/* Removes the readings of one source and returns them as the body of a `telemetry` line. Caller decrefs.
 * NULL: no readings. */
json_t *telemetry_block_take(struct telemetry_block *b);
void telemetry_block_release(struct telemetry_block *b);

/*
 * Adds the readings of a `telemetry` body to the array of series, with shift_ns added to their times. The
 * body is a block, or a line of one signal as in schema 1. Parts of a wrong form are ignored and leave *err
 * unchanged. The only error is NO_RESOURCE.
 */
enum status telemetry_block_read(const json_t *body, struct series **series, size_t *count, uint64_t shift_ns,
				 struct error *err);
enum signal_kind telemetry_block_kind(const json_t *object); /* by its "kind"; without one, a gauge */
#endif
