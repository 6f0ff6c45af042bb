/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between the host and the device, which are the same here. */
#include "core/math/random.h"
#include "model/cpu/internal.h"
#include "model/tensor/dtype.h"

static void copy_rows(const struct mat *m, void *packed, bool to_packed)
{
	const size_t row = dtype_bytes(m->dtype, (uint64_t)m->cols);

	for (int64_t i = 0; i < m->rows; i++) {
		uint8_t *inside = (uint8_t *)m->data + dtype_bytes(m->dtype, (uint64_t)(i * m->ld));
		uint8_t *outside = (uint8_t *)packed + (size_t)i * row;

		memcpy(to_packed ? outside : inside, to_packed ? inside : outside, row);
	}
}

enum status cpu_put(struct backend *back, struct mat to, const void *from, struct error *err)
{
	(void)back, (void)err;
	copy_rows(&to, (void *)(uintptr_t)from, false);
	return STATUS_OK;
}

enum status cpu_get(struct backend *back, struct mat from, void *to, struct error *err)
{
	(void)back, (void)err;
	copy_rows(&from, to, true);
	return STATUS_OK;
}

enum status cpu_batch(struct backend *back, const struct batch *host, struct batch *out, struct error *err)
{
	(void)back, (void)err;
	*out = *host;
	out->starts = host->doc_start;
	return STATUS_OK;
}

struct filling {
	const struct random_fill *fill;
	struct mat to;
};

static void fill_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	enum { CHUNK = 4096 };
	const struct filling *f = arg;
	float number[CHUNK];

	(void)thread;
	for (int64_t i = first; i < last; i++)
		for (int64_t j = 0; j < f->to.cols; j += CHUNK) {
			const size_t n = (size_t)(f->to.cols - j < CHUNK ? f->to.cols - j : CHUNK);
			const size_t at = (size_t)(i * f->to.ld + j);

			random_fill_f32(number, n, f->fill->seed, f->fill->stream,
					f->fill->first + (uint64_t)(i * f->to.cols + j));
			for (size_t k = 0; k < n; k++)
				((float *)f->to.data)[at + k] = f->fill->centre + f->fill->width * number[k];
		}
}

enum status cpu_random(struct backend *back, struct mat to, const struct random_fill *fill, struct error *err)
{
	struct filling f = {.fill = fill, .to = to};

	if (to.dtype != DTYPE_F32)
		return error_set(err, STATUS_UNSUPPORTED, "the CPU makes random numbers only in F32");
	cpu_parts(back, to.rows, 1, (double)(to.rows * to.cols) * sizeof(float), fill_rows, &f);
	return STATUS_OK;
}
