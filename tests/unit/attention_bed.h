/* SPDX-License-Identifier: Apache-2.0 */
/* An engine of probe attention on a device of the fake driver, or on the CPU. */
#ifndef TESTS_UNIT_ATTENTION_BED_H
#define TESTS_UNIT_ATTENTION_BED_H
#include "attention_words.h"
#include "core/clock.h"
#include "fake_gpu.h"
#include "unit/cpu_bench.h"

struct bed {
	struct cpu_bench bench;
	struct attention_opts opts;
	const struct engine *engine;
	struct attention *state;
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct result *out;
	struct error err;
};

static inline int set_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	*state = b;
	return !b || !fake_gpu_open(&b->device, &b->stream);
}

static inline int tear_down(void **state)
{
	struct bed *b = *state;

	fake_gpu_close(&b->device, &b->stream);
	free(b);
	return 0;
}

/* Its bench is the device's. */
static inline void on_device(struct bed *b)
{
	b->bench.target = (struct target){.kind = TARGET_GPU, .gpu_count = 1};
	b->bench.bench.device = b->device;
	b->bench.bench.stream[0] = b->stream;
	b->bench.bench.clock = clock_monotonic();
}
#endif
