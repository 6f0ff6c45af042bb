/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of a GPU, read by CUPTI in worker processes: over a range of work (range.c) or sampled by
 * time (sampling.c). Only one client per GPU may use them. If they are refused, the error says what to do; a
 * case never fails because of it. docs/explanation/design/counter.md.
 */
#ifndef COUNTER_COUNTER_H
#define COUNTER_COUNTER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "counter/metrics.h"

struct gpu_device;

#define X(name) COUNTER_SET_##name,
enum counter_set_number { COUNTER_SETS(X) COUNTER_SET_COUNT };
#undef X
#define X(name) COUNTER_##name = 1u << COUNTER_SET_##name,
enum counter_set { COUNTER_SETS(X) };
#undef X
#define X(name, ...) COUNTER_METRIC_##name,
enum counter_metric { COUNTER_METRICS(X) COUNTER_METRIC_COUNT };
#undef X
#define X(name, ...) COUNTER_SAMPLED_##name,
enum counter_sampled { COUNTER_SAMPLED(X) COUNTER_SAMPLED_COUNT };
#undef X

enum counter_kind { COUNTER_SUM, COUNTER_OF_CYCLES, COUNTER_OF_TIME, COUNTER_OF_ACTIVE, COUNTER_OF_L2 };

/* A row of counter/metrics.h. Static. */
struct counter_row {
	const char *name, *metric, *unit, *meaning; /* metric: NULL for the FLOP of a type */
	double factor;
	unsigned set; /* enum counter_set bit; 0: sampled */
	enum counter_kind kind;
};
extern const struct counter_row counter_rows[COUNTER_METRIC_COUNT];
extern const struct counter_row counter_sampled_rows[COUNTER_SAMPLED_COUNT];
/* CUPTI's metric for the FLOP of operands of this type ("bf16", "e4m3"); NULL: the tensor pipe has none. */
const char *counter_tensor_metric(const char *type);

/* The counters that a range session should collect. */
struct counter_request {
	unsigned sets;	  /* bits of enum counter_set */
	const char *type; /* for COUNTER_TENSOR; NULL: none */
	unsigned ranges;  /* maximum number of ranges per pass */
};

/* Values of a range in our units, summed over the whole range. */
struct counter_values {
	bool has[COUNTER_METRIC_COUNT];
	double value[COUNTER_METRIC_COUNT];
};

/* The values of `whole` minus those of `part`, as if the rest were a range of its own. Values that cannot be
 * determined are absent. */
struct counter_values counter_beyond(const struct counter_values *whole, const struct counter_values *part);

/*
 * A session that counts over ranges of work on the device's context. Every pass repeats the same work: begin;
 * for each range push, do the work, wait for it, pop; then end. Repeat until *done, then read each range.
 * Nothing is saved or restored between the passes. The device must outlive the session and be current on this
 * thread. A metric that the chip does not know is absent. Owner: caller, counter_range_close.
 * UNAVAILABLE: no library (LIBRARY_MISSING), not permitted (PERMISSION), in use by another client (BUSY),
 * wrong version (VERSION_MISMATCH). UNSUPPORTED: this device has no such counters.
 */
struct counter_range;
enum status counter_range_open(struct counter_range **r, const struct gpu_device *d,
			       const struct counter_request *wish, struct error *err);
void counter_range_close(struct counter_range **r);
unsigned counter_range_passes(const struct counter_range *r);
enum status counter_range_begin(struct counter_range *r, struct error *err);
enum status counter_range_push(struct counter_range *r, struct error *err);
enum status counter_range_pop(struct counter_range *r, struct error *err);
enum status counter_range_end(struct counter_range *r, bool *done, struct error *err);
/* Reads range `index`; ranges are numbered in the order of the pushes. */
enum status counter_range_read(struct counter_range *r, unsigned index, struct counter_values *out,
			       struct error *err);

/*
 * A session that samples counters of the whole device every interval_ns, whichever process uses it. `room`:
 * maximum number of samples between two reads. Errors are those of counter_range_open.
 */
struct counter_sample { /* one interval, by the GPU's timer */
	uint64_t begin_ns, end_ns;
	double value[COUNTER_SAMPLED_COUNT]; /* valid if counter_sampling_has */
};
struct counter_sampling;
enum status counter_sampling_open(struct counter_sampling **s, const struct gpu_device *d,
				  uint64_t interval_ns, unsigned room, struct error *err);
void counter_sampling_close(struct counter_sampling **s);
bool counter_sampling_has(const struct counter_sampling *s, enum counter_sampled which);
enum status counter_sampling_start(struct counter_sampling *s, struct error *err);
enum status counter_sampling_stop(struct counter_sampling *s, struct error *err);
/* Reads up to `most` samples since the last read. *lost: the hardware's buffer overflowed, so samples are
 * missing. */
enum status counter_sampling_read(struct counter_sampling *s, struct counter_sample *out, size_t most,
				  size_t *count, bool *lost, struct error *err);
#endif
