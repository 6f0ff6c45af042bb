/* SPDX-License-Identifier: Apache-2.0 */
/* A back end on the fake driver and cuBLASLt, and a GEMM with SwiGLU in each of a few layers. */
#ifndef TESTS_UNIT_MODEL_GPU_CHOOSE_BED_H
#define TESTS_UNIT_MODEL_GPU_CHOOSE_BED_H
#include "model_gpu_bed.h"
#include "fake_gpu.h"
#include "model/gpu/gemm/gemm.h"

enum { LAYERS = 3, OUT = 48, IN = 64, MOST = 40, STREAM_W = 1, STREAM_X = 2 };

struct choose_bed {
	struct backend back;
	struct arena arena;
	struct mat w[LAYERS], x, d, h;
};

static inline enum status make_small(void *arg, int64_t first, int64_t rows, void *out, struct error *err)
{
	const struct mat *m = arg;
	uint16_t *to = out;

	(void)err;
	for (int64_t i = 0; i < rows * m->cols; i++)
		to[i] = bf16_of_f32(0.1f * random_f32(7, STREAM_W, (uint64_t)(first * m->cols + i)));
	return STATUS_OK;
}

static inline enum status make_weights(void *arg, int64_t first, int64_t rows, void *out, struct error *err)
{
	const uint32_t *layer = arg;
	uint16_t *to = out;

	(void)err;
	for (int64_t i = 0; i < rows * IN; i++)
		to[i] = bf16_of_f32(random_f32(7 + *layer, STREAM_W, (uint64_t)(first * IN + i)));
	return STATUS_OK;
}

static inline void place(struct choose_bed *b, struct mat *m, int64_t rows, int64_t cols, enum dtype dtype)
{
	struct error err = {0};

	*m = (struct mat){.rows = rows, .cols = cols, .dtype = dtype};
	must(arena_mat(&b->arena, MEM_WEIGHTS, m, "a matrix", &err), &err);
}

/* own: with assay's own kernels, which E4M3 needs. */
static inline void open_bed(struct choose_bed *b, bool e4m3, bool own)
{
	const struct gpu_backend_options options = {
		.attention = GPU_ATTENTION_OWN, .graphs = true, .few_rows = own};
	const struct random_fill fill = {.seed = 9, .stream = STREAM_X, .width = 1};
	struct error err = {0};

	memset(b, 0, sizeof(*b));
	fakes_take();
	must(gpu_backend_create(&b->back, &options, &b->arena, &err), &err);
	must(gpu_backend_take(&b->back, 4 << 20, &err), &err);
	for (uint32_t i = 0; i < LAYERS; i++) {
		const struct made_rows made = {.make = make_weights, .arg = &i, .dtype = DTYPE_BF16};
		struct mat scale;

		place(b, &b->w[i], 2 * OUT, IN, e4m3 ? DTYPE_E4M3 : DTYPE_BF16);
		place(b, &scale, 1, 2 * OUT, DTYPE_F32);
		b->w[i].scales = e4m3 ? scales_of_rows(scale.data, b->w[i].cols) : (struct scales){0};
		must(gpu_backend_put_made(&b->back, b->w[i], &made, &err), &err);
	}
	place(b, &b->x, MOST, IN, DTYPE_BF16);
	place(b, &b->d, MOST, 2 * OUT, DTYPE_BF16);
	place(b, &b->h, MOST, OUT, DTYPE_BF16);
	must(b->back.ops->random(&b->back, b->x, &fill, &err), &err);
}

static inline enum status run_layers(struct choose_bed *b, int64_t rows, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < LAYERS; i++) {
		const struct gemm g = {.a = mat_rows(&b->x, 0, rows),
				       .b = b->w[i],
				       .d = mat_rows(&b->d, 0, rows),
				       .trans_b = true,
				       .alpha = 1};

		st = b->back.ops->gemm_swiglu(&b->back, &g, mat_rows(&b->h, 0, rows), err);
	}
	return st;
}

static inline enum status choose(struct choose_bed *b, int64_t rows, double seconds, struct error *err)
{
	enum status st = gpu_backend_watch(&b->back, true, err);

	if (!st)
		st = run_layers(b, rows, err);
	if (!st)
		st = gpu_backend_choose(&b->back, seconds, err);
	return st ? st : gpu_backend_watch(&b->back, false, err);
}

static inline const struct gemm_way *way_of(const struct choose_bed *b, int64_t rows)
{
	const struct gemm g = {.a = mat_rows(&b->x, 0, rows),
			       .b = b->w[1],
			       .d = mat_rows(&b->d, 0, rows),
			       .trans_b = true,
			       .alpha = 1};

	return gemm_chosen(gpu_of(&b->back), &g);
}

static inline void get_h(struct choose_bed *b, uint16_t out[MOST * OUT])
{
	struct error err = {0};

	must(run_layers(b, MOST, &err), &err);
	must(b->back.ops->get(&b->back, b->h, out, &err), &err);
}

static inline void are_close(const uint16_t before[MOST * OUT], const uint16_t after[MOST * OUT])
{
	for (int i = 0; i < MOST * OUT; i++)
		assert_true(fabs((double)(bf16_to_f32(before[i]) - bf16_to_f32(after[i]))) <
			    0.02 + 0.02 * fabs((double)bf16_to_f32(before[i])));
}
#endif
