/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/bnb4/bnb4_file.h"

#include <inttypes.h>
#include <math.h>
#include "model/tensor/dtype.h"

/* Numbers of a file's map may differ in their last places from those of another machine
 * (kernel/bnb4/tables.h).
 */
#define MAP_TOLERANCE 1e-6f
#define STATE ".quant_state.bitsandbytes__"

static const struct tensor *find(const struct shards *s, const char *weight, const char *tail)
{
	char name[BNB4_NAME_SIZE];

	snprintf(name, sizeof(name), "%s%s", weight, tail);
	return shards_find(s, name);
}

static const struct tensor *find_state(const struct shards *s, const char *weight, enum bnb4_type type)
{
	char tail[64];

	snprintf(tail, sizeof(tail), STATE "%s", bnb4_type_name(type));
	return find(s, weight, tail);
}

bool bnb4_file_has(const struct shards *s, const char *weight)
{
	return find_state(s, weight, BNB4_NF4) || find_state(s, weight, BNB4_FP4);
}

bool bnb4_file_is_part(char weight[NAME_SIZE], const char *name)
{
	static const char *const tails[] = {".absmax",		 ".quant_map", ".nested_absmax",
					    ".nested_quant_map", STATE "nf4",  STATE "fp4"};
	const size_t size = strlen(name);

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		const size_t tail = strlen(tails[i]);

		if (size > tail && size - tail < NAME_SIZE && !strcmp(name + size - tail, tails[i])) {
			snprintf(weight, NAME_SIZE, "%.*s", (int)(size - tail), name);
			return true;
		}
	}
	return false;
}

/* Finds a part that must be a list of `count` numbers of a type. */
static enum status get(const struct tensor **out, const struct shards *s, const struct named *n,
		       const char *tail, enum dtype dtype, uint64_t count, struct error *err)
{
	const struct tensor *t = find(s, n->hf, tail);

	if (!t)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s%s is missing",
				 shards_path(s, shards_find(s, n->hf)), n->hf, tail);
	if (t->dtype != dtype || t->rank != 1 || (uint64_t)t->dim[0] != count)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %s has %" PRId64 " numbers of type %s; %" PRIu64 " of %s are expected",
				 shards_path(s, t), t->name, t->rank ? t->dim[0] : 1, dtype_name(t->dtype),
				 count, dtype_name(dtype));
	*out = t;
	return STATUS_OK;
}

/* Checks a table against the known one. */
static enum status check_table(const struct shards *s, const struct tensor *t, const float *known,
			       float tolerance, struct error *err)
{
	for (int64_t i = 0; i < t->dim[0]; i++) {
		float number;

		memcpy(&number, t->data + (size_t)i * sizeof(number), sizeof(number));
		if (!(fabsf(number - known[i]) <= tolerance))
			return error_set(err, STATUS_UNSUPPORTED,
					 "%s: %s: number %" PRId64 " is %.9g, not %.9g: its table is unknown",
					 shards_path(s, t), t->name, i, (double)number, (double)known[i]);
	}
	return STATUS_OK;
}

static enum status read_state(struct bnb4_file *f, const struct shards *s, const struct named *n,
			      struct error *err)
{
	const struct tensor *nf4 = find_state(s, n->hf, BNB4_NF4), *fp4 = find_state(s, n->hf, BNB4_FP4);
	const struct tensor *t = nf4 ? nf4 : fp4;
	const enum bnb4_type type = nf4 ? BNB4_NF4 : BNB4_FP4;
	enum status st;

	if (nf4 && fp4)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s and %s cannot both be there",
				 shards_path(s, nf4), nf4->name, fp4->name);
	if (t->dtype != DTYPE_U8 || t->rank != 1)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s is not a list of U8", shards_path(s, t),
				 t->name);
	st = bnb4_state_parse(&f->state, t->data, t->size, shards_path(s, t), t->name, err);
	if (!st && f->state.type != type)
		st = error_set(err, STATUS_BAD_INPUT, "%s: %s: its \"quant_type\" is %s", shards_path(s, t),
			       t->name, bnb4_type_name(f->state.type));
	if (!st && (f->state.rows != n->rows || f->state.cols != n->cols))
		st = error_set(err, STATUS_BAD_INPUT,
			       "%s: %s: \"shape\" is %" PRId64 " x %" PRId64
			       "; the configuration makes it %" PRId64 " x %" PRId64,
			       shards_path(s, t), t->name, f->state.rows, f->state.cols, n->rows, n->cols);
	return st;
}

static float *numbers_of(const struct tensor *t)
{
	return (float *)(uintptr_t)t->data;
}

static enum status read_absmax(struct bnb4_file *f, const struct shards *s, const struct named *n,
			       struct error *err)
{
	const struct tensor *absmax, *group, *map;
	const uint64_t blocks = bnb4_blocks(n->rows, n->cols);
	enum status st;

	st = get(&absmax, s, n, ".absmax", f->state.nested ? DTYPE_U8 : DTYPE_F32, blocks, err);
	if (!st && !f->state.nested)
		f->m.absmax = numbers_of(absmax);
	if (st || !f->state.nested)
		return st;
	st = get(&group, s, n, ".nested_absmax", DTYPE_F32, bnb4_groups(n->rows, n->cols), err);
	if (!st)
		st = get(&map, s, n, ".nested_quant_map", DTYPE_F32, BNB4_MAP, err);
	if (!st)
		st = check_table(s, map, bnb4_absmax_map(), MAP_TOLERANCE, err);
	if (st)
		return st;
	f->m.absmax_codes = (uint8_t *)(uintptr_t)absmax->data;
	f->m.absmax = numbers_of(group);
	f->m.map = numbers_of(map);
	f->m.offset = &f->state.offset;
	if (!bnb4_finite(&f->m))
		st = error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT, "%s: %s has NaN or infinity",
				     shards_path(s, group), group->name);
	return st;
}

enum status bnb4_file_open(struct bnb4_file *f, const struct shards *s, const struct named *n,
			   struct error *err)
{
	const struct tensor *codes = shards_find(s, n->hf), *table;
	enum status st;

	*f = (struct bnb4_file){.codes = codes};
	st = read_state(f, s, n, err);
	if (!st && (n->vector || codes->size != bnb4_code_bytes(n->rows, n->cols)))
		st = error_set(err, STATUS_BAD_INPUT,
			       "%s: %s has %" PRIu64 " bytes; %" PRId64 " x %" PRId64
			       " of 4 bits are %" PRIu64,
			       shards_path(s, codes), n->hf, codes->size, n->rows, n->cols,
			       bnb4_code_bytes(n->rows, n->cols));
	if (!st)
		st = get(&table, s, n, ".quant_map", DTYPE_F32, BNB4_CODES, err);
	if (!st)
		st = check_table(s, table, bnb4_table(f->state.type), 0, err);
	f->m = (struct bnb4){.rows = n->rows,
			     .cols = n->cols,
			     .type = f->state.type,
			     .nested = f->state.nested,
			     .codes = (uint8_t *)(uintptr_t)codes->data};
	return st ? st : read_absmax(f, s, n, err);
}
