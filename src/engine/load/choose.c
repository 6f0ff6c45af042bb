/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/load/choose.h"
#include <stdlib.h>
#include "core/clock.h"
#include "engine/step/row_lists.h"
#include "model/model.h"
#include "model/gpu/backend.h"

/* Each number of rows stands for those below it. The likely ones come first, because the time may end. A
 * step with a prompt has at most 1024 rows of prompts beside those that decode (ROWS_TILE in engine.c). */
static const int32_t counts[] = {1,    64,   256, 32, 128, 8,	16,  1152, 1024, 512, 768,  192, 96,
				 1280, 2048, 48,  24, 160, 224, 384, 1536, 4096, 640, 8192, 896, 3072};

static double now_s(void)
{
	return (double)clock_now_ns(clock_monotonic()) * 1e-9;
}

enum { PREFILL_LEAST = 512 }; /* steps with fewer rows have rows of as many sequences */

/* A step of padding rows that write to page 0. With several adapters, all rows use the first one, or none. */
static enum status run(struct loaded *l, const int32_t *zeros, int64_t rows, bool adapted, struct error *err)
{
	const int32_t begin[2] = {0, 1}, keys = 1;
	const struct paged_rows step = {
		.token = zeros,
		.position = zeros,
		.slot = zeros,
		.begin = begin,
		.keys = &keys,
		.page = zeros,
		.output = zeros,
		.adapter = adapted ? zeros : NULL,
		.adapted = adapted,
		.rows = rows,
		.sequences = 1,
		.outputs = rows <= l->most.outputs ? rows : 0,
		.page_ld = 1,
		.keys_most = 1,
		.page_tokens = l->most.page_tokens,
	};

	return paged_step_forward(l->step, &step, err);
}

static enum status choose(struct loaded *l, const int32_t *zeros, int64_t rows, double left_s,
			  struct error *err)
{
	struct error ignored = {0};
	enum status st = gpu_backend_watch(&l->back, true, err), ended;

	if (!st)
		st = run(l, zeros, rows, false, err);
	if (!st && l->model->owners > 1)
		st = run(l, zeros, rows, true, err);
	if (!st)
		st = gpu_backend_choose(&l->back, left_s, err);
	ended = gpu_backend_watch(&l->back, false, st ? &ignored : err);
	return st ? st : ended;
}

enum status load_choose(struct loaded *l, double seconds, struct error *err)
{
	const int64_t decode_most = row_lists_ladder(l->most.sequences, l->most.rows);
	int32_t *zeros = calloc((size_t)l->most.rows, sizeof(*zeros));
	const double begin = now_s();
	enum status st = STATUS_OK;

	if (!zeros)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the lists of a step");
	for (size_t i = 0; !st && i < sizeof(counts) / sizeof(counts[0]); i++) {
		const double left_s = seconds - (now_s() - begin);

		if ((counts[i] <= decode_most || (counts[i] >= PREFILL_LEAST && counts[i] <= l->most.rows)) &&
		    left_s > 0)
			st = choose(l, zeros, counts[i], left_s, err);
	}
	free(zeros);
	return st;
}
