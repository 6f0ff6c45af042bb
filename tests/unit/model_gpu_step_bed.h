/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU back end on the fake driver, with matrices for the sampling of a few rows. */
#ifndef TESTS_UNIT_MODEL_GPU_STEP_BED_H
#define TESTS_UNIT_MODEL_GPU_STEP_BED_H
#include "test.h"
#include <math.h>
#include "core/math/random.h"
#include "fake_gpu.h"
#include "kernel/fatbin.h"
#include "model/backend/cost.h"
#include "model/backend/plan_backend.h"
#include "model/gpu/backend.h"
#include "must.h"

enum { VOCAB = 131, LD = 136, ROWS = 6, PLACES = 9, WORDS = (VOCAB + 31) / 32, ARENA = 64 << 20 };

struct bed {
	struct arena arena;
	struct backend back;
	struct paged_room room;
	struct sample s;
	struct mat logits, counts, last, results;
	struct sample_row row[ROWS];
	struct sample_bias bias[4];
	uint32_t mask[2 * WORDS];
};

static inline void skip_without_kernels(void)
{
	if (!kernel_fatbin_at(0))
		skip();
}

static inline void place(struct bed *b, struct mat *m, int64_t rows, int64_t cols, enum dtype dtype)
{
	struct error err = {0};

	*m = (struct mat){.rows = rows, .cols = cols, .dtype = dtype};
	must(arena_mat(b->back.arena, MEM_SCRATCH, m, "a matrix", &err), &err);
	memset(m->data, 0, (size_t)(rows * cols) * (dtype == DTYPE_BF16 || dtype == DTYPE_U16 ? 2 : 4));
}

/* Deterministic numbers in (-4, 4), as BF16. */
static inline void fill(const struct mat *m, uint32_t stream)
{
	for (int64_t i = 0; i < m->rows * m->cols; i++)
		((uint16_t *)m->data)[i] = bf16_of_f32(4 * random_f32(11, stream, (uint64_t)i));
}

static inline enum status open_bed(struct bed *b, const char *staged, struct error *err)
{
	const struct gpu_backend_options options = {.attention = GPU_ATTENTION_OWN, .graphs = true};
	enum status st;

	memset(b, 0, sizeof(*b));
	fakes_take();
	setenv("FAKE_CUDA", staged, 1);
	st = gpu_backend_create(&b->back, &options, &b->arena, err);
	return st ? st : gpu_backend_take(&b->back, ARENA, err);
}

static inline void open_sampling(struct bed *b, const char *staged)
{
	const struct paged_limits most = {.rows = ROWS,
					  .outputs = ROWS,
					  .sequences = ROWS,
					  .pages = 1,
					  .vocab = VOCAB,
					  .page_tokens = 16};
	struct error err = {0};

	must(open_bed(b, staged, &err), &err);
	b->room.limits = most;
	must(workspace_sampling(&b->back, &b->room, &err), &err);
	place(b, &b->logits, ROWS, LD, DTYPE_BF16);
	fill(&b->logits, 0);
	place(b, &b->counts, PLACES, VOCAB, DTYPE_U16);
	place(b, &b->last, 1, PLACES, DTYPE_I32);
	place(b, &b->results, ROWS, SAMPLE_RESULT_WORDS, DTYPE_I32);
	for (int i = 0; i < ROWS; i++)
		b->row[i] = (struct sample_row){
			.top_p = 1, .repetition = 1, .given = -1, .mask = -1, .logprobs = -1, .place = i};
	b->s = (struct sample){.room = &b->room,
			       .logits = b->logits,
			       .lists = {.row = b->row,
					 .bias = b->bias,
					 .mask = b->mask,
					 .rows = ROWS,
					 .mask_words = WORDS,
					 .plain = true,
					 .greedy = true},
			       .vocab = VOCAB,
			       .counts = b->counts,
			       .last = b->last,
			       .results = b->results};
}

static inline void close_bed(struct bed *b)
{
	gpu_backend_release(&b->back);
	unsetenv("FAKE_CUDA");
}

static inline float logit(const struct bed *b, int row, int id)
{
	return bf16_to_f32(((const uint16_t *)b->logits.data)[row * LD + id]);
}

static inline int largest(const struct bed *b, int row)
{
	int best = 0;

	for (int id = 1; id < VOCAB; id++)
		best = logit(b, row, id) > logit(b, row, best) ? id : best;
	return best;
}

static inline const struct sample_result *sampled(struct bed *b, int turn)
{
	struct error err = {0};
	const void *out = NULL;

	must(b->back.ops->sample(&b->back, &b->s, &err), &err);
	must(b->back.ops->fetch_begin(&b->back, b->results, turn, &err), &err);
	must(b->back.ops->fetch_wait(&b->back, turn, &out, &err), &err);
	return out;
}
#endif
