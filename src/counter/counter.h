/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of a GPU by CUPTI, in worker processes: of a range of work (range.c) or sampled by time
 * (sampling.c). One client a GPU may hold them; what refuses is an error whose sentence says what to do, and
 * never a reason for a case to fail. docs/explanation/design/counter.md.
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
	unsigned set; /* one of enum counter_set; 0: sampled */
	enum counter_kind kind;
};
extern const struct counter_row counter_rows[COUNTER_METRIC_COUNT];
extern const struct counter_row counter_sampled_rows[COUNTER_SAMPLED_COUNT];
/* The metric for the FLOP of operands of this type ("bf16", "e4m3"); NULL: the tensor pipe has none. */
const char *counter_tensor_metric(const char *type);

/* What is wanted of a range. */
struct counter_wish {
	unsigned sets;	  /* of enum counter_set */
	const char *type; /* for COUNTER_TENSOR; NULL: none */
	unsigned ranges;  /* of a pass, at most */
};

/* Of a range, in our units; sums over the whole of it. */
struct counter_values {
	bool has[COUNTER_METRIC_COUNT];
	double value[COUNTER_METRIC_COUNT];
};

/* What `whole` counted beyond `part`, as if it were a range of its own; what cannot be told is absent. */
struct counter_values counter_beyond(const struct counter_values *whole, const struct counter_values *part);

/*
 * Counters over ranges of work on the device's context, for as long as it is open. Every pass does the same
 * once more: begin, for each range push, work, wait for it, pop, then end, until *done; then read each range.
 * Nothing is saved or restored between the passes. Owner: caller, counter_range_close; the device outlives
 * it, and is current on this thread. A metric that the chip does not know is absent. UNAVAILABLE: no library
 * (LIBRARY_MISSING), not permitted (PERMISSION), held by another (BUSY), of another version
 * (VERSION_MISMATCH); UNSUPPORTED: this device.
 */
struct counter_range;
enum status counter_range_open(struct counter_range **r, const struct gpu_device *d,
			       const struct counter_wish *wish, struct error *err);
void counter_range_close(struct counter_range **r);
unsigned counter_range_passes(const struct counter_range *r);
enum status counter_range_begin(struct counter_range *r, struct error *err);
enum status counter_range_push(struct counter_range *r, struct error *err);
enum status counter_range_pop(struct counter_range *r, struct error *err);
enum status counter_range_end(struct counter_range *r, bool *done, struct error *err);
/* The ranges in the order in which they were pushed. */
enum status counter_range_read(struct counter_range *r, unsigned index, struct counter_values *out,
			       struct error *err);

/*
 * Counters of the whole device every interval_ns, whoever works on it. `room`: samples kept between two
 * reads. Errors as above.
 */
struct counter_sample { /* one interval, by the GPU's timer */
	uint64_t begin_ns, end_ns;
	double value[COUNTER_SAMPLED_COUNT]; /* by counter_sampling_has */
};
struct counter_sampling;
enum status counter_sampling_open(struct counter_sampling **s, const struct gpu_device *d,
				  uint64_t interval_ns, unsigned room, struct error *err);
void counter_sampling_close(struct counter_sampling **s);
bool counter_sampling_has(const struct counter_sampling *s, enum counter_sampled which);
enum status counter_sampling_start(struct counter_sampling *s, struct error *err);
enum status counter_sampling_stop(struct counter_sampling *s, struct error *err);
/* What was sampled since the last read, at most `most`. *lost: the hardware's buffer was full, samples are
 * missing. */
enum status counter_sampling_read(struct counter_sampling *s, struct counter_sample *out, size_t most,
				  size_t *count, bool *lost, struct error *err);
#endif
