/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are stored in 4 bits, and transposed ones. A slot is filled at once, so there is nothing to
 * wait for. */
#include "model/cpu/fp8.h"
#include "model/cpu/internal.h"
#include "model/tensor/dtype.h"
#include "model/tensor/matrix.h"

static bool is_supported(enum dtype dtype)
{
	return dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F16;
}

static enum status refuse(enum dtype dtype, struct error *err)
{
	return error_set(err, STATUS_BUG, "weights in 4 bits cannot be numbers of %s", dtype_name(dtype));
}

enum status cpu_quantize(struct backend *back, struct mat from, const struct stored *to, struct error *err)
{
	cost_touch(back, &from, 1);
	back->cost.bytes += (double)stored_bytes(to);
	return is_supported(from.dtype) ? bnb4_quantize(&to->bnb4, &from, cpu_of(back)->pool, err)
					: refuse(from.dtype, err);
}

/* Dequantizes rows [row, row + to->rows) of a linear layer, from the tensors that have them. */
static void numbers_of(struct backend *back, const struct slot_part *p, int64_t row, const struct mat *to)
{
	for (int i = 0; i < p->count; i++) {
		const struct stored *s = &p->from[i];
		const int64_t first = row > s->begin ? row : s->begin;
		const int64_t end = s->begin + s->bnb4.rows,
			      last = row + to->rows < end ? row + to->rows : end;
		const struct mat part = first < last ? mat_rows(to, first - row, last - first) : *to;

		if (first < last)
			bnb4_dequantize(&s->bnb4, first - s->begin, &part, cpu_of(back)->pool);
	}
}

/* Some rows of tiles at a time. */
static enum status fill_e4m3(struct backend *back, const struct slot_part *p, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat numbers;
	enum status st = workspace_slot_numbers(back, p, &numbers, err);

	for (int64_t row = 0, each = numbers.rows; !st && row < p->to.rows; row += each) {
		const int64_t rows = p->to.rows - row < each ? p->to.rows - row : each;
		const struct mat to = mat_rows(&p->to, row, rows),
				 turned = mat_cols(&p->transposed, row, rows);

		numbers.rows = rows;
		numbers_of(back, p, row, &numbers);
		st = cpu_fp8_weights(back, &numbers, &to, &turned, NULL, err);
	}
	arena_reset(back->arena, &mark);
	return st;
}

static enum status fill_numbers(struct backend *back, const struct slot_part *p, struct error *err)
{
	if (!is_supported(p->to.dtype))
		return refuse(p->to.dtype, err);
	numbers_of(back, p, 0, &p->to);
	return STATUS_OK;
}

enum status cpu_slot_fill(struct backend *back, const struct slot_fill *fill, struct error *err)
{
	enum status st = STATUS_OK;

	cost_slot_fill(back, fill);
	for (int i = 0; !st && i < fill->parts; i++) {
		const struct slot_part *p = &fill->part[i];

		if (!p->count && p->transposed.rows)
			cpu_fp8_transpose(back, &p->to, &p->transposed);
		else if (p->to.dtype == DTYPE_E4M3)
			st = fill_e4m3(back, p, err);
		else if (p->count)
			st = fill_numbers(back, p, err);
	}
	return st;
}

enum status cpu_slot_event(struct backend *back, int slot, struct error *err)
{
	(void)back, (void)slot, (void)err;
	return STATUS_OK;
}
