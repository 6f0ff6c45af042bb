/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/fingerprint.h"

#include <inttypes.h>
#include "core/file/file.h"
#include "core/file/mapped.h"
#include "core/text/text.h"
#include "model/bnb4/bnb4.h"
#include "model/tensor/dtype.h"

static int64_t sampled(int64_t rows)
{
	return rows < FINGERPRINT_ROWS ? rows : FINGERPRINT_ROWS;
}

static int64_t row_at(int64_t rows, int64_t i)
{
	return i ? i * (rows - 1) / (sampled(rows) - 1) : 0;
}

static enum status take_bytes(struct text *out, const struct weights_raw *raw, const struct named *n)
{
	uint64_t size = raw->tensor->size / (uint64_t)n->rows;

	text_addf(out, "%s ", dtype_name(raw->tensor->dtype));
	for (int64_t i = 0; i < sampled(n->rows); i++)
		text_add_bytes(out, (const char *)weights_row(raw, row_at(n->rows, i)), size);
	return STATUS_OK;
}

static enum status take_numbers(struct text *out, const struct weights *w, const struct named *n,
				struct error *err)
{
	size_t cols = (size_t)n->cols;
	float *floats = malloc(cols * sizeof(*floats));
	uint16_t *halves = malloc(cols * sizeof(*halves));
	enum status st = STATUS_OK;

	if (!floats || !halves)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->path);
	for (int64_t i = 0; i < sampled(n->rows) && !st; i++) {
		st = weights_rows(w, n->hf, row_at(n->rows, i), 1, floats, err);
		if (st)
			break;
		dtype_pack(DTYPE_BF16, floats, halves, cols);
		text_add_bytes(out, (const char *)halves, cols * sizeof(*halves));
	}
	free(floats);
	free(halves);
	return st;
}

static enum status take_tensor(struct text *all, const struct weights *w, const struct named *n,
			       enum fingerprint_of of, struct error *err)
{
	struct weights_raw raw;
	struct text sample = {0};
	char hex[FINGERPRINT_SIZE];
	enum status st;

	if (!weights_find(&raw, w, n->hf))
		return error_set(err, STATUS_BUG, "%s: it has no tensor %s", w->path, n->hf);
	if (raw.bnb4 && of == FINGERPRINT_BYTES) /* instead of codes and all kinds of absmax, their numbers */
		text_addf(&sample, "%s ", bnb4_type_name(raw.bnb4->type));
	st = of == FINGERPRINT_BYTES && !raw.bnb4 ? take_bytes(&sample, &raw, n)
						  : take_numbers(&sample, w, n, err);
	if (!st && sample.failed)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->path);
	if (!st) {
		file_sha256(hex, text_str(&sample), sample.size);
		text_addf(all, "%s %" PRId64 " %" PRId64 " %s\n", n->hf, n->rows, n->cols, hex);
	}
	text_release(&sample);
	return st;
}

/* The shape, not the text of the configuration: a GGUF and a folder use different names and rounding. */
static void take_shape(struct text *all, const struct shape *s)
{
	json_t *config = shape_config(s, DTYPE_F32);
	char *text = config ? json_dumps(config, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	text_add(all, text ? text : "");
	all->failed = all->failed || !text;
	free(text);
	json_decref(config);
}

enum status weights_fingerprint(char hex[FINGERPRINT_SIZE], const struct weights *w, enum fingerprint_of of,
				struct error *err)
{
	size_t count = names_count(&w->shape);
	enum status st = STATUS_OK;
	struct text all = {0};
	struct named n;

	if (of == FINGERPRINT_BYTES)
		take_shape(&all, &w->shape);
	for (size_t i = 0; i < count && !st; i++) {
		names_at(&n, &w->shape, i);
		st = take_tensor(&all, w, &n, of, err);
		weights_forget(
			w); /* a row brings pages around it into memory, in a small model all of them */
	}
	st = mapped_check(st, err);
	if (!st && all.failed)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->path);
	if (!st)
		file_sha256(hex, text_str(&all), all.size);
	text_release(&all);
	return st;
}
