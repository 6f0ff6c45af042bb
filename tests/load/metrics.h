/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker counts, and /metrics in the names of a known server. */
#ifndef TESTS_LOAD_METRICS_H
#define TESTS_LOAD_METRICS_H
#include <stdatomic.h>
#include "load/buf.h"
#include "load/options.h"

/* clang-format off */
#define COUNTERS(X) \
	X(CONNECTIONS) X(REFUSED) X(REQUESTS) X(ENDED) X(COMPLETE) X(LEFT) X(PROMPT_TOKENS) X(CACHED_TOKENS) X(TOKENS) X(CHUNKS) \
	X(TTFT_COUNT) X(TTFT_NS)
/* clang-format on */
#define X(name) COUNTER_##name,
enum counter { COUNTERS(X) COUNTER_COUNT };
#undef X
enum { TTFT_BUCKETS = 8 };

/* One worker writes, others read. */
struct counters {
	_Atomic uint64_t value[COUNTER_COUNT], ttft[TTFT_BUCKETS];
};

void counter_add(struct counters *c, enum counter which, uint64_t more);
void counter_add_ttft(struct counters *c, uint64_t ns);
void counters_sum(struct counters *sum, const struct counters *more);
void metrics_write(struct buf *out, const struct counters *c, enum stub_names names, const char *model);
#endif
