/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/bnb4/bnb4_file.h"

#include "model/tensor/dtype.h"

static void add(struct bnb4_part *out, enum bnb4_part_kind kind, const char *weight, const char *tail,
		enum dtype dtype, uint64_t rows)
{
	struct bnb4_part *p = out;

	p->kind = kind;
	snprintf(p->name, sizeof(p->name), "%s%s", weight, tail);
	p->tensor = (struct tensor){.name = p->name,
				    .dtype = dtype,
				    .rank = kind == BNB4_PART_CODES ? 2 : 1,
				    .dim = {(int64_t)rows, 1}};
	dtype_measure(&p->tensor);
	p->late = p->tensor.size % 4;
}

size_t bnb4_parts(struct bnb4_part out[BNB4_PARTS_MOST], const char *weight, const struct bnb4_state *s)
{
	const uint64_t blocks = bnb4_blocks(s->rows, s->cols);
	struct text state = {0};
	char tail[64];
	size_t count = 0;

	snprintf(tail, sizeof(tail), ".quant_state.bitsandbytes__%s", bnb4_type_name(s->type));
	bnb4_state_text(&state, s);
	add(&out[count++], BNB4_PART_TABLE, weight, ".quant_map", DTYPE_F32, BNB4_CODES);
	if (s->nested) {
		add(&out[count++], BNB4_PART_GROUP_ABSMAX, weight, ".nested_absmax", DTYPE_F32,
		    bnb4_groups(s->rows, s->cols));
		add(&out[count++], BNB4_PART_MAP, weight, ".nested_quant_map", DTYPE_F32, BNB4_MAP);
	}
	add(&out[count++], BNB4_PART_ABSMAX, weight, ".absmax", s->nested ? DTYPE_U8 : DTYPE_F32, blocks);
	add(&out[count++], BNB4_PART_CODES, weight, "", DTYPE_U8, bnb4_code_bytes(s->rows, s->cols));
	add(&out[count++], BNB4_PART_STATE, weight, tail, DTYPE_U8, state.size);
	text_release(&state);
	return count;
}

/* bitsandbytes writes FP4's -0 as 0. */
static void copy_table(float *out, enum bnb4_type type)
{
	for (int i = 0; i < BNB4_CODES; i++)
		out[i] = bnb4_table(type)[i] + 0.0f;
}

enum status bnb4_part_data(void *out, const struct bnb4_part *part, const struct bnb4_state *s,
			   const struct bnb4 *m, struct error *err)
{
	const void *from = m->codes;
	struct text state = {0};
	float table[BNB4_CODES];
	enum status st = STATUS_OK;

	switch (part->kind) {
	case BNB4_PART_TABLE:
		copy_table(table, m->type);
		from = table;
		break;
	case BNB4_PART_GROUP_ABSMAX:
		from = m->absmax;
		break;
	case BNB4_PART_MAP:
		from = m->map;
		break;
	case BNB4_PART_ABSMAX:
		from = m->nested ? (const void *)m->absmax_codes : m->absmax;
		break;
	case BNB4_PART_CODES:
		break;
	case BNB4_PART_STATE:
		bnb4_state_text(&state, s);
		from = state.data;
		break;
	}
	if (state.failed || (state.data && state.size != part->tensor.size))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for %s",
				     part->name);
	else
		memcpy(out, from, part->tensor.size);
	text_release(&state);
	return st;
}
