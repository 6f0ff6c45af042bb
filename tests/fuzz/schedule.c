/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a small engine and what its clients do (tests/unit/schedule_world.h); every check of that
 * world holds. */
#include "fuzz.h"

#include "../unit/schedule_world.h"

/* The first bytes choose the engine. */
static struct world_options options_of(const uint8_t *data)
{
	static const int32_t depths[] = {0, 1, 2, 16};
	struct world_options o = world_small(2 + data[0] % 60, 1 + data[1] % 12, depths[data[2] % 4]);

	o.schedule.bypass_most = data[3] % 4;
	o.schedule.pages_ahead = data[4] % 4;
	o.schedule.age_ns = data[5] % 2 ? 0 : 1000 + data[5] * 100000;
	o.schedule.budget_ns = data[6] * 20000;
	o.schedule.budget_idle_ns = data[7] * 40000;
	o.schedule.cost.depth_ns = data[8] % 16 * 50;
	o.schedule.requests_most = o.schedule.places + data[9] % 32;
	o.live_most = o.schedule.requests_most;
	o.schedule.rows_most = o.schedule.places + 16 + data[10] % 100;
	o.schedule.mixed_rows = data[7] % 2 ? 1 + data[10] % o.schedule.rows_most : 0;
	o.schedule.backlog_rows = data[3] / 4 % 8 * o.schedule.mixed_rows;
	o.schedule.backlog_every = data[2] / 4 % 8;
	o.schedule.mixed_prompt_rows = data[11] / 32 * o.schedule.rows_most / 7;
	o.schedule.mixed_few = data[10] / 16;
	o.schedule.rows_together = data[11] / 32 + data[2] / 32;
	o.schedule.logits_most = o.schedule.places + 16 + data[11] % 32;
	o.prompt_most = 2 + data[12] % 160;
	o.text_most = 1 + data[13] % 64;
	return o;
}

enum { HEAD = 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world_options o;
	struct world_report report;
	struct error err = {0};

	if (size < HEAD || size > 1 << 16)
		return 0;
	o = options_of(data);
	o.bytes = data + HEAD;
	o.size = size - HEAD;
	o.requests = 64;
	o.check_every = 4;
	o.recompute_most = 1e9; /* bytes may preempt as often as they like */
	if (world_run(&o, &report, &err))
		fprintf(stderr, "%s\n", err.text);
	FUZZ_CHECK(!err.status);
	return 0;
}
