/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cpu/invariant/quantised_gemm.h"
#include <math.h>
#include <stdlib.h>
#include "model/cpu/real.h"
#include "model/tensor/dtype.h"
#include "model/tensor/matrix.h"

enum {
	ITEM_BYTES = 24 << 10, /* weights that a thread takes at once */
	STRIP = 32,	       /* rows of x between two stores of results */
};

bool cpu_blocks_of(enum dtype dtype)
{
	return dtype == DTYPE_Q8_0 || dtype == DTYPE_Q4_0 || dtype == DTYPE_Q4_1;
}

/* Bytes of the scales at the beginning of a block. */
static size_t head_bytes(enum dtype dtype)
{
	return dtype == DTYPE_Q4_1 ? 4 : 2;
}

/* Copies a block between its own place and column `col` of a panel's block. */
static void move_block(enum dtype dtype, uint8_t *block, uint8_t *panel, int col, bool pack)
{
	const size_t head = head_bytes(dtype), size = dtype_bytes(dtype, CPU_BLOCK);

	for (size_t at = 0; at < size;) {
		const size_t part = at < head ? 2 : 4; /* two bytes of a scale, or a group of four */
		uint8_t *there =
			at < head ? panel + at * CPU_PANEL + 2 * (size_t)col
				  : panel + head * CPU_PANEL + (at - head) * CPU_PANEL + 4 * (size_t)col;

		memcpy(pack ? there : block + at, pack ? block + at : there, part);
		at += part;
	}
}

/* The rows that are in panels. */
static int64_t panel_rows(const struct mat *m)
{
	return m->panels ? m->rows / CPU_PANEL * CPU_PANEL : 0;
}

static void pack_panel(enum dtype dtype, const uint8_t *rows, uint8_t *panel, int64_t blocks)
{
	const size_t size = dtype_bytes(dtype, CPU_BLOCK);

	for (int64_t b = 0; b < blocks; b++)
		for (int col = 0; col < CPU_PANEL; col++)
			move_block(dtype, (uint8_t *)(uintptr_t)rows + (size_t)(col * blocks + b) * size,
				   panel + (size_t)b * size * CPU_PANEL, col, true);
}

enum status cpu_pack(struct backend *back, struct mat *w, struct error *err)
{
	const size_t bytes = dtype_bytes(w->dtype, (uint64_t)(CPU_PANEL * w->ld));
	uint8_t *copy;

	(void)back;
	if (!cpu_blocks_of(w->dtype) || w->panels || w->cols != w->ld)
		return STATUS_OK;
	copy = malloc(bytes);
	if (!copy)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %zu bytes of weights", bytes);
	w->panels = true;
	for (int64_t row = 0; row < panel_rows(w); row += CPU_PANEL) {
		uint8_t *panel = (uint8_t *)w->data + (size_t)(row / CPU_PANEL) * bytes;

		memcpy(copy, panel, bytes);
		pack_panel(w->dtype, copy, panel, w->cols / CPU_BLOCK);
	}
	free(copy);
	return STATUS_OK;
}

void cpu_unpack_row(const struct mat *m, int64_t row, float *out)
{
	const size_t size = dtype_bytes(m->dtype, CPU_BLOCK);
	uint8_t block[64];

	if (row >= panel_rows(m)) {
		dtype_unpack(m->dtype, mat_rows(m, row, 1).data, out, (size_t)m->cols);
		return;
	}
	for (int64_t b = 0; b < m->cols / CPU_BLOCK; b++) {
		uint8_t *panel = (uint8_t *)m->data +
				 (size_t)(row / CPU_PANEL * m->cols / CPU_BLOCK + b) * size * CPU_PANEL;

		move_block(m->dtype, block, panel, (int)(row % CPU_PANEL), false);
		dtype_unpack(m->dtype, block, out + b * CPU_BLOCK, CPU_BLOCK);
	}
}

static panel_dot widest(enum dtype dtype)
{
	for (int width = CPU_WIDTHS - 1; width > CPU_PLAIN; width--) {
		panel_dot dot = cpu_panel_dot(dtype, width);

		if (dot)
			return dot;
	}
	return cpu_panel_dot(dtype, CPU_PLAIN);
}

/* x in bytes: q, then scales, then sums. */
int64_t cpu_rows_bytes(int64_t rows, int64_t cols)
{
	return rows * (cols + cols / CPU_BLOCK * (int64_t)(sizeof(float) + sizeof(int32_t)));
}

struct quantised {
	int8_t *q;
	float *scale;
	int32_t *sum;
};

static struct quantised parts_of(void *memory, int64_t rows, int64_t cols)
{
	struct quantised p = {.q = memory};

	p.scale = (float *)(void *)(p.q + rows * cols);
	p.sum = (int32_t *)(void *)(p.scale + rows * cols / CPU_BLOCK);
	return p;
}

/* 127 steps of the largest magnitude, rounded to nearest. If a number is not finite, the scale is NaN. */
VECTOR static void quantise_row(const float *restrict x, int8_t *restrict q, float *restrict scale,
				int32_t *restrict sum, int64_t blocks)
{
	for (int64_t b = 0; b < blocks; b++, x += CPU_BLOCK, q += CPU_BLOCK) {
		float most = 0, bad = 0, inverse;
		int32_t total = 0;

#pragma omp simd reduction(max : most) reduction(+ : bad)
		for (int i = 0; i < CPU_BLOCK; i++) {
			const float size = fabsf(x[i]);

			most = size > most ? size : most;
			bad += x[i] - x[i];
		}
		inverse = bad == 0 && most > 0 ? 127 / most : 0;
#pragma omp simd reduction(+ : total)
		for (int i = 0; i < CPU_BLOCK; i++) {
			const float value = bad == 0 ? x[i] * inverse : 0;
			const int32_t near = (int32_t)(value + (value < 0 ? -0.5f : 0.5f));

			q[i] = (int8_t)near;
			total += near;
		}
		scale[b] = most / 127 + bad;
		sum[b] = total;
	}
}

struct work {
	const struct gemm *g;
	struct quantised to;
	struct cpu_rows x;
	panel_dot dot;
	int64_t panels, tail, panels_per_item;
};

static void quantise_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct work *w = arg;

	(void)thread;
	for (int64_t i = first; i < last; i++)
		quantise_row(real_row(w->g->a, i), w->to.q + i * w->x.blocks * CPU_BLOCK,
			     w->to.scale + i * w->x.blocks, w->to.sum + i * w->x.blocks, w->x.blocks);
}

/* d = alpha dots + beta c + bias for `cols` columns of some rows. */
static void store(const struct gemm *g, int64_t row, int64_t rows, int64_t col, int64_t cols,
		  const float *dots)
{
	for (int64_t i = 0; i < rows; i++, dots += CPU_PANEL) {
		float *d = real_row(g->d, row + i) + col;
		const float *c = g->beta != 0 ? real_row(g->c, row + i) + col : NULL;
		const float *bias = g->bias.rows ? real_row(g->bias, 0) + col : NULL;

		for (int64_t j = 0; j < cols; j++) {
			const float begin = (c ? g->beta * c[j] : 0) + (bias ? bias[j] : 0);

			d[j] = begin + g->alpha * dots[j];
		}
	}
}

static void multiply_item(void *arg, int64_t item, unsigned thread)
{
	const struct work *w = arg;
	const struct gemm *g = w->g;
	const size_t bytes = dtype_bytes(g->b.dtype, (uint64_t)(CPU_PANEL * g->b.ld));
	const int64_t first = item * w->panels_per_item, rows = g->d.rows;
	const int64_t last = first + w->panels_per_item < w->panels ? first + w->panels_per_item : w->panels;
	float dots[STRIP * CPU_PANEL];

	(void)thread;
	for (int64_t p = first; p < last; p++)
		for (int64_t row = 0; row < rows; row += STRIP) {
			const int64_t count = rows - row < STRIP ? rows - row : STRIP;

			w->dot((const uint8_t *)g->b.data + (size_t)p * bytes, &w->x, row, count, dots);
			store(g, row, count, p * CPU_PANEL, CPU_PANEL, dots);
		}
	for (int64_t j = last == w->panels ? g->d.cols - w->tail : g->d.cols; j < g->d.cols; j++)
		for (int64_t row = 0; row < rows; row += STRIP) {
			const int64_t count = rows - row < STRIP ? rows - row : STRIP;

			cpu_row_dot(g->b.dtype, mat_rows(&g->b, j, 1).data, &w->x, row, count, dots);
			store(g, row, count, j, 1, dots);
		}
}

enum status cpu_gemm_blocks(struct backend *back, const struct gemm *g, struct error *err)
{
	const int64_t packed = panel_rows(&g->b), items_bytes = ITEM_BYTES;
	struct work w = {
		.g = g, .dot = widest(g->b.dtype), .panels = packed / CPU_PANEL, .tail = g->d.cols - packed};
	const struct arena_mark mark = arena_mark(back->arena);
	const double bytes = (double)dtype_bytes(g->b.dtype, (uint64_t)(g->b.rows * g->b.cols));
	struct mat room;
	int64_t items;
	enum status st;

	if (!g->trans_b || g->trans_a || g->a.dtype != DTYPE_F32 || g->d.dtype != DTYPE_F32)
		return error_set(err, STATUS_BUG, "quantized weights can be multiplied only by rows of F32");
	st = workspace_blocks(back, g, &room, err);
	if (st)
		return st;
	cost_gemm(back, g);
	w.to = parts_of(room.data, g->d.rows, g->a.cols);
	w.x = (struct cpu_rows){w.to.q, w.to.scale, w.to.sum, g->a.cols / CPU_BLOCK};
	cpu_parts(back, g->d.rows, 1, (double)(g->d.rows * g->a.cols), quantise_rows, &w);
	w.panels_per_item = items_bytes / (int64_t)dtype_bytes(g->b.dtype, (uint64_t)(CPU_PANEL * g->b.ld));
	w.panels_per_item = w.panels_per_item ? w.panels_per_item : 1;
	items = (w.panels + w.panels_per_item - 1) / w.panels_per_item;
	cpu_items(back, items ? items : 1, bytes, multiply_item, &w);
	arena_reset(back->arena, &mark);
	return STATUS_OK;
}
