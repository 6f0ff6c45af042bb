/* SPDX-License-Identifier: Apache-2.0 */
/* Fills matrices in memory from an adapter's file. */
#include <inttypes.h>
#include "core/file/mapped.h"
#include "model/files/peft/peft.h"
#include "model/tensor/dtype.h"

static enum status wrong_size(const struct peft *p, const struct peft_slot *slot, struct error *err)
{
	return error_set(err, STATUS_BAD_INPUT, "%s: %s of %" PRId64 " x %" PRId64 " is not in this adapter",
			 p->file.path, slot->name, slot->mat.rows, slot->mat.cols);
}

/* Whether the matrix fits the slot: A may have fewer rows, B fewer columns. */
static bool fits(const struct tensor *t, const struct peft_slot *slot)
{
	const struct mat *m = &slot->mat;
	const bool rows = slot->part == PEFT_A ? t->dim[0] <= m->rows : t->dim[0] == m->rows;
	const bool cols = slot->part == PEFT_B ? t->dim[1] <= m->cols : t->dim[1] == m->cols;

	return rows && cols && m->dtype == DTYPE_F32 && m->data;
}

static void clear(const struct mat *m)
{
	for (int64_t row = 0; row < m->rows; row++)
		memset((float *)m->data + row * m->ld, 0, (size_t)m->cols * sizeof(float));
}

static enum status fill(const struct peft *p, const struct tensor *t, const struct mat *m, double factor,
			struct error *err)
{
	const uint64_t row_bytes = t->size / (uint64_t)t->dim[0];

	for (int64_t row = 0; row < t->dim[0]; row++) {
		float *to = (float *)m->data + row * m->ld;

		dtype_unpack(t->dtype, t->data + row_bytes * (uint64_t)row, to, (size_t)t->dim[1]);
		for (int64_t i = 0; factor != 1 && i < t->dim[1]; i++)
			to[i] = (float)(to[i] * factor);
		if (!dtype_finite(DTYPE_F32, to, (size_t)t->dim[1]))
			return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
					       "%s: %s has NaN or infinity", p->file.path, t->name);
	}
	return STATUS_OK;
}

enum status peft_load_slot(const struct peft *p, const struct peft_slot *slot, double scale,
			   struct error *err)
{
	const struct tensor *t = peft_find(p, slot->name, slot->part);
	const struct peft_module *module = peft_module_of(p, slot->name);

	if (!slot->mat.data || (t && !fits(t, slot)))
		return wrong_size(p, slot, err);
	if (!t || t->dim[0] < slot->mat.rows || t->dim[1] < slot->mat.cols)
		clear(&slot->mat);
	if (!t)
		return STATUS_OK;
	return fill(p, t, &slot->mat, slot->part == PEFT_B && module ? module->scale / scale : 1, err);
}

/* Matrices of the file besides magnitudes. */
static size_t matrices(const struct peft *p)
{
	size_t count = 0;

	for (size_t i = 0; i < p->file.count; i++)
		count += p->file.tensors[i].rank > 1;
	return count;
}

enum status peft_load(const struct peft *p, const struct peft_slot *slots, size_t count, struct error *err)
{
	enum status st = STATUS_OK;

	if (count != matrices(p))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: it has %zu matrices, but %zu are needed; rank or targets differ",
				 p->file.path, matrices(p), count);
	for (size_t i = 0; i < count && !st; i++)
		st = peft_find(p, slots[i].name, slots[i].part)
			     ? peft_load_slot(p, &slots[i], peft_scale(&p->config), err)
			     : wrong_size(p, &slots[i], err);
	return mapped_check_sizes(st, err);
}
