/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/peft/delta.h"
#include <math.h>
#include <stdlib.h>
#include "core/file/mapped.h"
#include "model/tensor/dtype.h"

static enum status read_floats(float **out, const struct peft *p, const struct tensor *t, float scale,
			       struct error *err)
{
	const size_t count = (size_t)(t->dim[0] * (t->rank > 1 ? t->dim[1] : 1));

	*out = malloc(count * sizeof(**out));
	if (!*out)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", t->name);
	dtype_unpack(t->dtype, t->data, *out, count);
	if (!dtype_finite(DTYPE_F32, *out, count))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT, "%s: %s has NaN or infinity",
				       p->file.path, t->name);
	for (size_t i = 0; scale != 1 && i < count; i++)
		(*out)[i] *= scale;
	return STATUS_OK;
}

enum status peft_delta_read(struct peft_delta *d, const struct peft *p, const char *base, struct error *err)
{
	const struct peft_module *m = peft_module_of(p, base);
	enum status st;

	*d = (struct peft_delta){0};
	if (!m)
		return STATUS_OK;
	d->rank = m->rank;
	d->rows = m->b->dim[0];
	d->cols = m->a->dim[1];
	st = read_floats(&d->a, p, m->a, 1, err);
	if (!st)
		st = read_floats(&d->b, p, m->b, (float)m->scale, err);
	if (!st && m->magnitude)
		st = read_floats(&d->magnitude, p, m->magnitude, 1, err);
	return mapped_check(st, err);
}

void peft_delta_release(struct peft_delta *d)
{
	free(d->a);
	free(d->b);
	free(d->magnitude);
	*d = (struct peft_delta){0};
}

static void add_row(const struct peft_delta *d, int64_t row, float *restrict w)
{
	for (int64_t k = 0; k < d->rank; k++) {
		const float *restrict a = d->a + k * d->cols;
		const float factor = d->b[row * d->rank + k];

		for (int64_t i = 0; i < d->cols; i++)
			w[i] += factor * a[i];
	}
}

/* A row of zeros has no direction, so its magnitude does not matter. */
static float ratio_of(const struct peft_delta *d, int64_t row, const float *w)
{
	double squares = 0;

	for (int64_t i = 0; i < d->cols; i++)
		squares += (double)w[i] * (double)w[i];
	return squares > 0 ? (float)(d->magnitude[row] / sqrt(squares)) : 1;
}

void peft_delta_apply(const struct peft_delta *d, int64_t row, int64_t count, float *w, float *ratio)
{
	for (int64_t i = 0; d->rank && i < count; i++) {
		float *to = w + i * d->cols;
		float factor = 1;

		add_row(d, row + i, to);
		if (d->magnitude)
			factor = ratio_of(d, row + i, to);
		for (int64_t c = 0; d->magnitude && c < d->cols; c++)
			to[c] *= factor;
		if (ratio)
			ratio[i] = factor;
	}
	for (int64_t i = 0; !d->rank && ratio && i < count; i++)
		ratio[i] = 1;
}
