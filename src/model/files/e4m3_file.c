/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/e4m3_file.h"

#include <inttypes.h>
#include "model/tensor/dtype.h"
#include "model/tensor/fp8.h"

enum { TAILS = 2 };
static const char *const tails[TAILS] = {"_scale", "_scale_inv"};

static const struct tensor *find(const struct shards *s, const char *name, const char *tail)
{
	char scale[NAME_SIZE + 16];

	snprintf(scale, sizeof(scale), "%s%s", name, tail);
	return shards_find(s, scale);
}

/* NULL: the weight has no scales. */
static const struct tensor *scale_of(const struct shards *s, const char *name)
{
	const struct tensor *t = NULL;

	for (int i = 0; i < TAILS && !t; i++)
		t = find(s, name, tails[i]);
	return t;
}

static int64_t elements_of(const struct tensor *t)
{
	int64_t count = 1;

	for (int i = 0; i < t->rank; i++)
		count *= t->dim[i];
	return count;
}

/* The tensor's dimensions say what a scale belongs to. rows 0: they fit no layout. */
static struct e4m3_scale layout_of(const struct tensor *t, const struct named *n)
{
	struct e4m3_scale s = {.tensor = t, .per_row = 1};

	if (elements_of(t) == 1) {
		s.rows = n->rows;
		s.cols = n->cols;
	} else if (elements_of(t) == n->rows && t->rank <= 2 && t->dim[0] == n->rows) {
		s.rows = 1;
		s.cols = n->cols;
	} else if (t->rank == 2 && t->dim[0] == fp8_tiles(n->rows) && t->dim[1] == fp8_tiles(n->cols)) {
		s.rows = s.cols = FP8_TILE;
		s.per_row = t->dim[1];
	}
	return s;
}

struct e4m3_scale e4m3_file_scale(const struct shards *s, const struct named *n)
{
	const struct tensor *t = scale_of(s, n->hf);

	return t ? layout_of(t, n) : (struct e4m3_scale){0};
}

static enum status refuse_layout(const struct shards *s, const struct tensor *t, const struct named *n,
				 struct error *err)
{
	return error_set(
		err, STATUS_UNSUPPORTED,
		"%s: %s is %d-dimensional and has %" PRId64 " scales of type %s for %" PRId64 " x %" PRId64
		" elements; one, one per row, or one per %d x %d elements, of F32, BF16 or F16, are supported",
		shards_path(s, t), t->name, t->rank, elements_of(t), dtype_name(t->dtype), n->rows, n->cols,
		FP8_TILE, FP8_TILE);
}

enum status e4m3_file_check(const struct shards *s, const struct named *n, struct error *err)
{
	const struct tensor *t = scale_of(s, n->hf), *weight = shards_find(s, n->hf);

	if (!t || n->vector)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s is E4M3 without scales (%s%s or %s%s)",
				 shards_path(s, weight), n->hf, n->hf, tails[0], n->hf, tails[1]);
	if (find(s, n->hf, tails[0]) && find(s, n->hf, tails[1]))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s has both %s%s and %s%s",
				 shards_path(s, weight), n->hf, n->hf, tails[0], n->hf, tails[1]);
	if ((t->dtype != DTYPE_F32 && t->dtype != DTYPE_BF16 && t->dtype != DTYPE_F16) ||
	    !layout_of(t, n).rows)
		return refuse_layout(s, t, n, err);
	if (!dtype_finite(t->dtype, t->data, (size_t)elements_of(t)))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s has NaN or infinity", shards_path(s, t),
				 t->name);
	return STATUS_OK;
}

float e4m3_scale_at(const struct e4m3_scale *s, int64_t row, int64_t col)
{
	const int64_t i = row / s->rows * s->per_row + col / s->cols;
	float scale;

	dtype_unpack(s->tensor->dtype, s->tensor->data + dtype_bytes(s->tensor->dtype, (uint64_t)i), &scale,
		     1);
	return scale;
}

void e4m3_scale_apply(const struct e4m3_scale *s, int64_t row, int64_t first, float *numbers, size_t count)
{
	const int64_t end = first + (int64_t)count;

	for (int64_t col = first; col < end;) {
		const int64_t tile_end = (col / s->cols + 1) * s->cols,
			      last = end < tile_end ? end : tile_end;
		const float scale = e4m3_scale_at(s, row, col);

		for (; col < last; col++)
			numbers[col - first] *= scale;
	}
}

bool e4m3_file_is_part(char weight[NAME_SIZE], const char *name)
{
	static const char *const ends[] = {"weight_scale", "weight_scale_inv", "input_scale"};
	const size_t size = strlen(name);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const size_t end = strlen(ends[i]);

		if (size <= end || strcmp(name + size - end, ends[i]) || size - end + 7 > NAME_SIZE)
			continue;
		snprintf(weight, NAME_SIZE, "%.*sweight", (int)(size - end), name);
		return true;
	}
	return false;
}
