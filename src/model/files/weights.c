/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/weights.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/process/cpu_pool.h"
#include "core/file/mapped.h"
#include "model/tensor/dtype.h"
#include "model/files/bnb4/bnb4_file.h"
#include "model/files/gguf/gguf.h"
#include "model/files/peft/names.h"
#include "core/json/file.h"
#include "model/files/safetensors/shards.h"
#include "model/gpu/backend.h"
#include "model/tensor/matrix.h"

enum { CONFIG_MAX = 16 << 20, FORGET_BYTES = 16 << 20, FORGET_BYTES_DEVICE = 256 << 20 };

static const struct tensor *lookup(const struct weights *w, const struct named *n)
{
	return w->gguf ? gguf_tensor(w->gguf, n->gguf) : shards_find(w->shards, n->hf);
}

/* The file that contains a tensor, for messages. */
static const char *path_of(const struct weights *w, const struct tensor *t)
{
	return w->gguf ? w->path : shards_path(w->shards, t);
}

static enum status check_tensor(struct weights *w, const struct named *n, struct error *err)
{
	const struct tensor *t = lookup(w, n);
	const char *name = w->gguf ? n->gguf : n->hf;
	bool fits;

	if (t && w->shards && bnb4_file_has(w->shards, n->hf))
		return bnb4_file_open(&w->bnb4[w->bnb4_count++], w->shards, n, err);

	if (!t)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s is missing%s", w->path, name,
				 strcmp(n->hf, "lm_head.weight") ? "" : ", and the model's head is not tied");
	fits = n->vector ? t->rank == 1 && t->dim[0] == n->cols
			 : t->rank == 2 && t->dim[0] == n->rows && t->dim[1] == n->cols;
	if (!fits)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %s is %d-dimensional, %" PRId64 " x %" PRId64
				 "; the configuration makes it %" PRId64 " x %" PRId64,
				 path_of(w, t), name, t->rank, t->rank > 1 ? t->dim[0] : 1,
				 t->rank ? t->dim[t->rank - 1] : 1, n->rows, n->cols);
	if (!dtype_unpacks(t->dtype))
		return error_set(
			err, STATUS_UNSUPPORTED,
			"%s: %s is %s%s; F32, BF16, F16, F64, E4M3, Q8_0, Q4_0 and Q4_1 are supported, "
			"and NF4 and FP4 of bitsandbytes",
			path_of(w, t), name, dtype_name(t->dtype),
			w->shards && t->dtype == DTYPE_U8 ? " without a quant_state of bitsandbytes" : "");
	return t->dtype == DTYPE_E4M3 ? e4m3_file_check(w->shards, n, err) : STATUS_OK;
}

/* Tensors that old checkpoints contain and no model needs: constants of RoPE, and a copy of a tied head. */
static bool superfluous(const struct weights *w, const char *name)
{
	const char *tail = ".rotary_emb.inv_freq";
	size_t size = strlen(name), tail_size = strlen(tail);

	if (w->gguf)
		return !strcmp(name, "rope_freqs.weight");
	return (size > tail_size && !strcmp(name + size - tail_size, tail)) ||
	       (w->shape.tied && !strcmp(name, "lm_head.weight"));
}

/* Scales of a known tensor in E4M3, or of its input: activations are quantized row by row here. */
static bool is_scale(const struct weights *w, const json_t *known, const char *name)
{
	const struct tensor *t;
	char weight[NAME_SIZE];

	if (!w->shards || !e4m3_file_is_part(weight, name))
		return false;
	t = shards_find(w->shards, weight);
	return t && t->dtype == DTYPE_E4M3 && json_object_get(known, weight);
}

/* A part of a known matrix of 4 bits. */
static bool is_part(const struct weights *w, const json_t *known, const char *name)
{
	char weight[NAME_SIZE];

	return w->shards && bnb4_file_is_part(weight, name) && json_object_get(known, weight) &&
	       bnb4_file_has(w->shards, weight);
}

/* known: an object whose keys are the shape's tensor names. */
static enum status check_extra(const struct weights *w, const json_t *known, struct error *err)
{
	size_t count = w->gguf ? w->gguf->tensor_count : w->shards->tensor_count;

	for (size_t i = 0; i < count; i++) {
		const struct tensor *t = w->gguf ? &w->gguf->tensors[i] : w->shards->tensors[i];

		if (!json_object_get(known, t->name) && !superfluous(w, t->name) &&
		    !is_scale(w, known, t->name) && !is_part(w, known, t->name))
			return error_set(
				err, STATUS_BAD_INPUT,
				"%s: %.100s is not a tensor of such a model: the file or the configuration "
				"belongs to another model",
				path_of(w, t), t->name);
	}
	return STATUS_OK;
}

static enum status check_tensors(struct weights *w, struct error *err)
{
	size_t count = names_count(&w->shape);
	json_t *known = json_object();
	enum status st = STATUS_OK;
	struct named n;

	w->bnb4 = calloc(count, sizeof(*w->bnb4));
	if (!w->bnb4)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->path);
	for (size_t i = 0; i < count && !st; i++) {
		names_at(&n, &w->shape, i);
		st = check_tensor(w, &n, err);
		if (!st && json_object_set_new(known, w->gguf ? n.gguf : n.hf, json_true()))
			st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory",
					     w->path);
	}
	if (!st)
		st = check_extra(w, known, err);
	json_decref(known);
	return st;
}

/* Whether it surely is not there. What cannot be looked at has a cause that opening it will name. */
static bool lacks_file(const char *folder, const char *name)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) && errno == ENOENT;
}

/* A folder without config.json. */
static enum status not_a_model(const char *folder, struct error *err)
{
	if (!lacks_file(folder, PEFT_CONFIG))
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s is an adapter, not a model; name its base model, and the adapter as an adapter "
			"(assay serve BASE --adapter %s)",
			folder, folder);
	return error_set(err, STATUS_BAD_INPUT,
			 "%s is not a model: it has no config.json (a model is a folder with config.json and "
			 "safetensors files, or a GGUF file)",
			 folder);
}

static enum status open_folder(struct weights *w, struct error *err)
{
	char config[PATH_MAX + 16];
	struct shards shards;
	json_t *read;
	enum status st;

	if (lacks_file(w->path, "config.json"))
		return not_a_model(w->path, err);
	snprintf(config, sizeof(config), "%s/config.json", w->path);
	st = json_file_read(&read, config, CONFIG_MAX, err);
	if (!st)
		st = shape_of_config(&w->shape, read, config, err);
	json_decref(read);
	if (!st)
		st = shards_open(&shards, w->path, err);
	if (st)
		return st;
	w->shards = malloc(sizeof(*w->shards));
	if (!w->shards) {
		shards_release(&shards);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->path);
	}
	*w->shards = shards;
	return STATUS_OK;
}

static enum status open_gguf(struct weights *w, struct error *err)
{
	struct gguf gguf;
	enum status st = gguf_open(&gguf, w->path, err);

	if (st)
		return st;
	w->gguf = malloc(sizeof(*w->gguf));
	if (!w->gguf) {
		gguf_release(&gguf);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->path);
	}
	*w->gguf = gguf;
	st = shape_of_gguf(&w->shape, w->gguf, err);
	return mapped_check(st, err);
}

enum status weights_open(struct weights *w, const char *path, struct error *err)
{
	struct stat about;
	enum status st;

	*w = (struct weights){0};
	if (strlen(path) >= sizeof(w->path) - 64)
		return error_set(err, STATUS_BAD_INPUT, "path is too long: %.200s", path);
	snprintf(w->path, sizeof(w->path), "%s", path);
	if (stat(path, &about))
		return error_errno(
			err, errno,
			"cannot open model %s (a folder with config.json and safetensors files, or a "
			"GGUF file; assay downloads no models)",
			path);
	st = S_ISDIR(about.st_mode) ? open_folder(w, err) : open_gguf(w, err);
	if (!st)
		st = check_tensors(w, err);
	if (st)
		weights_release(w);
	return st;
}

void weights_release(struct weights *w)
{
	if (w->gguf)
		gguf_release(w->gguf);
	if (w->shards)
		shards_release(w->shards);
	free(w->gguf);
	free(w->shards);
	free(w->bnb4);
	*w = (struct weights){0};
}

uint64_t weights_bytes(const struct weights *w)
{
	uint64_t bytes = w->gguf ? w->gguf->metadata.map_size : 0;

	for (size_t i = 0; w->shards && i < w->shards->file_count; i++)
		bytes += w->shards->files[i].map_size;
	return bytes;
}

bool weights_find(struct weights_raw *raw, const struct weights *w, const char *name)
{
	struct named n;

	if (!names_find(&n, &w->shape, name))
		return false;
	*raw = (struct weights_raw){.tensor = lookup(w, &n), .interleaved = w->gguf ? n.interleaved : 0};
	if (raw->tensor && raw->tensor->dtype == DTYPE_E4M3)
		raw->scale = e4m3_file_scale(w->shards, &n);
	for (size_t i = 0; i < w->bnb4_count && !raw->bnb4; i++)
		raw->bnb4 = w->bnb4[i].codes == raw->tensor ? &w->bnb4[i].m : NULL;
	return raw->tensor;
}

bool weights_are_e4m3_of_rows(const struct weights *w)
{
	for (size_t i = 0; i < names_count(&w->shape); i++) {
		const struct tensor *t;
		struct e4m3_scale scale;
		struct named n;

		names_at(&n, &w->shape, i);
		t = lookup(w, &n);
		if (!t || t->dtype != DTYPE_E4M3)
			continue;
		scale = e4m3_file_scale(w->shards, &n);
		if (e4m3_scale_is_of_rows(&scale))
			return true;
	}
	return false;
}

const uint8_t *weights_row(const struct weights_raw *raw, int64_t row)
{
	const struct tensor *t = raw->tensor;
	int64_t rows = t->rank > 1 ? t->dim[0] : 1, head, in, half;

	if (raw->interleaved) { /* rows i and i + half of a head are adjacent */
		head = rows / raw->interleaved;
		in = row % head;
		half = head / 2;
		row += in < half ? in : in - head + 1;
	}
	return t->data + t->size / (uint64_t)rows * (uint64_t)row;
}

/* Elements first, first + 1, .. of a row as floats. */
static void unpack_row(const struct weights_raw *raw, int64_t row, size_t first, float *to, size_t count)
{
	const enum dtype stored = raw->tensor->dtype;

	dtype_unpack(stored, weights_row(raw, row) + dtype_bytes(stored, first), to, count);
	if (raw->scale.tensor)
		e4m3_scale_apply(&raw->scale, row, (int64_t)first, to, count);
}

/* Converts elements first, first + 1, .. of one row, through floats if the types differ. */
static void convert_row(const struct weights_raw *raw, int64_t row, size_t first, void *to, enum dtype wanted,
			size_t count)
{
	enum { CHUNK = 4096 }; /* a multiple of every type's block */
	float floats[CHUNK];
	struct tensor element = {.dtype = wanted};

	dtype_measure(&element);
	if (raw->tensor->dtype == wanted) {
		memcpy(to, weights_row(raw, row) + dtype_bytes(wanted, first), dtype_bytes(wanted, count));
		return;
	}
	if (wanted == DTYPE_F32) {
		unpack_row(raw, row, first, to, count);
		return;
	}
	for (size_t at = 0; at < count; at += CHUNK) {
		size_t n = count - at < CHUNK ? count - at : CHUNK;

		unpack_row(raw, row, first + at, floats, n);
		dtype_pack(wanted, floats, (uint8_t *)to + at * element.size, n);
	}
}

/* Converts rows [row, row + to->rows) and as many columns as `to` has, from `col` on, of the model, however
 * the file stores them. */
static void read_rows(const struct weights_raw *raw, int64_t row, int64_t col, const struct mat *to)
{
	const uint64_t pitch = dtype_bytes(to->dtype, (uint64_t)to->ld);

	if (raw->bnb4) {
		bnb4_dequantize(raw->bnb4, row, to, NULL);
		return;
	}
	for (int64_t i = 0; i < to->rows; i++)
		convert_row(raw, row + i, (size_t)col, (uint8_t *)to->data + (uint64_t)i * pitch, to->dtype,
			    (size_t)to->cols);
}

/* Whether the numbers of a stored row are finite; for quantized blocks, those that they represent. */
static bool row_finite(enum dtype dtype, const void *row, size_t count)
{
	enum { CHUNK = 4096 };
	float floats[CHUNK];

	/* An E4M3 number is NaN in two of its 256 forms. */
	for (size_t i = 0; dtype == DTYPE_E4M3 && i < count; i++)
		if ((((const uint8_t *)row)[i] & 0x7f) == 0x7f)
			return false;
	if (dtype == DTYPE_E4M3)
		return true;
	if (dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F16)
		return dtype_finite(dtype, row, count);
	for (size_t at = 0; at < count; at += CHUNK) {
		size_t n = count - at < CHUNK ? count - at : CHUNK;

		dtype_unpack(dtype, (const uint8_t *)row + dtype_bytes(dtype, at), floats, n);
		if (!dtype_finite(DTYPE_F32, floats, n))
			return false;
	}
	return true;
}

static enum status no_number(const struct weights *w, const struct weights_raw *raw, int64_t row,
			     enum dtype wanted, struct error *err)
{
	const struct tensor *t = raw->tensor;

	if (raw->bnb4 && !bnb4_finite(raw->bnb4))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
				       "%s: %s.absmax has NaN or infinity", path_of(w, t), t->name);
	return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
			       "%s: %s: row %" PRId64 " has NaN, infinity or what %s cannot hold",
			       path_of(w, t), t->name, row, dtype_name(wanted));
}

void weights_forget(const struct weights *w)
{
	if (w->gguf)
		mapped_forget(w->gguf->metadata.map, w->gguf->metadata.map_size);
	for (size_t i = 0; w->shards && i < w->shards->file_count; i++)
		mapped_forget(w->shards->files[i].map, w->shards->files[i].map_size);
}

/* The type in which rows of a slot are made. A GPU quantizes rows of BF16 itself, also those whose elements
 * have several scales in the file. */
static enum dtype made_in(const struct mat *to, const struct weights_raw *raw)
{
	return to->dtype == DTYPE_E4M3 && !e4m3_scale_is_of_rows(&raw->scale) ? DTYPE_BF16 : to->dtype;
}

/* Whether some columns of a row can be read alone. */
static bool reads_columns(const struct weights_raw *raw)
{
	const enum dtype d = raw->tensor->dtype;

	return !raw->bnb4 && (d == DTYPE_F32 || d == DTYPE_BF16 || d == DTYPE_F16 || d == DTYPE_F64 ||
			      (d == DTYPE_E4M3 && raw->scale.tensor));
}

static enum status check_slot(const struct weights *w, const struct backend *back,
			      const struct weights_slot *slot, struct weights_raw *raw, struct named *n,
			      struct error *err)
{
	const struct mat *to = &slot->to;
	const bool is_e4m3 = to->dtype == DTYPE_E4M3 && back && mat_has_row_scales(to);

	if (!names_find(n, &w->shape, slot->name) || !weights_find(raw, w, slot->name))
		return error_set(err, STATUS_BUG, "%s: a model of this shape has no %.100s", w->path,
				 slot->name);
	if ((slot->is_part ? slot->row < 0 || slot->col < 0 || slot->row + to->rows > n->rows ||
				     slot->col + to->cols > n->cols
			   : to->rows != n->rows || to->cols != n->cols) ||
	    to->ld < to->cols || !to->data || (to->dtype == DTYPE_E4M3 && !is_e4m3) ||
	    (to->dtype != DTYPE_F32 && to->dtype != DTYPE_BF16 && to->dtype != DTYPE_F16 && !is_e4m3 &&
	     (to->dtype != raw->tensor->dtype || raw->bnb4)))
		return error_set(err, STATUS_BUG,
				 "%s: %s is %" PRId64 " x %" PRId64 ", not %" PRId64 " x %" PRId64 " of %s",
				 w->path, n->hf, n->rows, n->cols, to->rows, to->cols, dtype_name(to->dtype));
	if (slot->is_part && to->cols < n->cols && !reads_columns(raw))
		return error_set(err, STATUS_UNSUPPORTED,
				 "%s: %s is in quantized blocks, of which several ranks cannot read some "
				 "columns; convert the model to BF16 first",
				 path_of(w, raw->tensor), n->hf);
	return STATUS_OK;
}

enum status weights_rows(const struct weights *w, const char *name, int64_t row, int64_t rows, float *out,
			 struct error *err)
{
	struct weights_raw raw;
	struct named n;
	struct mat to;

	if (!names_find(&n, &w->shape, name) || !weights_find(&raw, w, name) || row < 0 || rows < 0 ||
	    row + rows > n.rows)
		return error_set(err, STATUS_BUG, "%s: %.100s has no rows %" PRId64 " to %" PRId64, w->path,
				 name, row, row + rows);
	to = (struct mat){.data = out, .rows = rows, .cols = n.cols, .ld = n.cols, .dtype = DTYPE_F32};
	read_rows(&raw, row, 0, &to);
	for (int64_t i = 0; i < rows; i++)
		if (!dtype_finite(DTYPE_F32, out + i * n.cols, (size_t)n.cols))
			return mapped_check(no_number(w, &raw, row + i, DTYPE_F32, err), err);
	return mapped_check(STATUS_OK, err);
}

/* Slots are divided into pieces that threads take one at a time, so that no thread has to load a large head
 * alone. */
enum { PIECE_BYTES = 1 << 20 };

struct loading {
	const struct weights *w;
	struct backend *back; /* NULL: the slots are in host memory */
	const struct weights_slot *slots;
	struct weights_raw *raw; /* one per slot */
	size_t *first;		 /* first piece of each slot; the last entry is the total number */
	size_t count;
	atomic_size_t next;
	enum status *st;
	struct error *err; /* first error of each thread */
};

/* Rows of a slot that one thread loads. */
struct rows {
	const struct loading *l;
	size_t slot;
	int64_t first; /* the first row to store */
	int64_t ld;
	uint64_t read; /* bytes of the files read by this thread since the last call of weights_forget */
};

static int64_t piece_rows(const struct mat *to)
{
	const uint64_t row = dtype_bytes(to->dtype, (uint64_t)to->cols);

	return row < PIECE_BYTES ? (int64_t)(PIECE_BYTES / row) : 1;
}

static enum status load_rows(void *arg, int64_t first, int64_t rows, void *out, struct error *err)
{
	struct rows *r = arg;
	const struct loading *l = r->l;
	const struct mat *to = &l->slots[r->slot].to;
	const struct weights_raw *raw = &l->raw[r->slot];
	const int64_t row = l->slots[r->slot].row + r->first + first;
	const struct mat made = {
		.data = out, .rows = rows, .cols = to->cols, .ld = r->ld, .dtype = made_in(to, raw)};

	read_rows(raw, row, l->slots[r->slot].col, &made);
	for (int64_t i = 0; i < rows; i++)
		if (!row_finite(made.dtype, (uint8_t *)out + dtype_bytes(made.dtype, (uint64_t)(i * r->ld)),
				(size_t)to->cols))
			return no_number(l->w, raw, row + i, made.dtype, err);
	r->read += raw->tensor->size / (uint64_t)to->rows * (uint64_t)rows;
	/* each call makes other threads' pages fault again, so it is rarer when the weights go to a device */
	if (r->read < (l->back ? FORGET_BYTES_DEVICE : FORGET_BYTES))
		return STATUS_OK;
	weights_forget(l->w);
	r->read = 0;
	return STATUS_OK;
}

static enum status load_piece(struct loading *l, size_t piece, struct rows *r, struct error *err)
{
	struct made_rows made = {.make = load_rows, .arg = r};
	const struct mat *to;
	struct mat part;
	int64_t most;

	while (piece >= l->first[r->slot + 1]) /* the pieces of a thread are in ascending order */
		r->slot++;
	to = &l->slots[r->slot].to;
	most = piece_rows(to);
	r->first = (int64_t)(piece - l->first[r->slot]) * most;
	part = mat_rows(to, r->first, to->rows - r->first < most ? to->rows - r->first : most);
	made.dtype = made_in(to, &l->raw[r->slot]);
	r->ld = l->back ? to->cols : to->ld;
	return l->back ? gpu_backend_put_made(l->back, part, &made, err)
		       : load_rows(r, 0, part.rows, part.data, err);
}

static void load_some(void *arg, unsigned thread)
{
	struct loading *l = arg;
	struct rows r = {.l = l};
	size_t piece;

	while (!l->st[thread] && (piece = atomic_fetch_add(&l->next, 1)) < l->first[l->count])
		l->st[thread] = load_piece(l, piece, &r, &l->err[thread]);
}

static enum status count_pieces(struct loading *l, struct error *err)
{
	struct named n;
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < l->count; i++) {
		const struct mat *to = &l->slots[i].to;
		int64_t most;

		st = check_slot(l->w, l->back, &l->slots[i], &l->raw[i], &n, err);
		if (st)
			return st;
		most = piece_rows(to);
		l->first[i + 1] = l->first[i] + (size_t)((to->rows + most - 1) / most);
	}
	return st;
}

/* The factors of tensors that stay in the file's E4M3. */
static enum status load_factors(const struct loading *l, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < l->count; i++) {
		const struct mat *to = &l->slots[i].to;
		const struct mat scale = {.data = to->scales.data,
					  .rows = 1,
					  .cols = to->rows,
					  .ld = to->rows,
					  .dtype = DTYPE_F32};
		float *factor;

		if (to->dtype != DTYPE_E4M3 || made_in(to, &l->raw[i]) != DTYPE_E4M3)
			continue;
		factor = malloc((size_t)to->rows * sizeof(*factor));
		if (!factor)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory",
					       l->w->path);
		for (int64_t row = 0; row < to->rows; row++)
			factor[row] = e4m3_scale_at(&l->raw[i].scale, row, 0);
		st = l->back->ops->put(l->back, scale, factor, err);
		free(factor);
	}
	return st;
}

static enum status load_all(const struct weights *w, struct backend *back, const struct weights_slot *slots,
			    size_t count, struct error *err)
{
	struct loading l = {.w = w, .back = back, .slots = slots, .count = count};
	struct cpu_pool *pool = NULL;
	enum status st = cpu_pool_usable(&pool, err);
	unsigned threads = st ? 0 : cpu_pool_count(pool);

	l.raw = calloc(count + 1, sizeof(*l.raw));
	l.first = calloc(count + 1, sizeof(*l.first));
	l.st = calloc(threads + 1, sizeof(*l.st));
	l.err = calloc(threads + 1, sizeof(*l.err));
	if (!st && (!l.raw || !l.first || !l.st || !l.err))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", w->path);
	if (!st)
		st = count_pieces(&l, err);
	if (!st)
		cpu_pool_run(pool, load_some, &l);
	weights_forget(w);
	for (unsigned i = 0; i < threads && !st; i++) {
		st = l.st[i];
		if (st && err && !err->status)
			*err = l.err[i];
	}
	if (!st)
		st = load_factors(&l, err);
	st = mapped_check_sizes(st, err);
	cpu_pool_destroy(&pool);
	free(l.raw);
	free(l.first);
	free(l.st);
	free(l.err);
	return st;
}

enum status weights_load(const struct weights *w, const struct weights_slot *slots, size_t count,
			 struct error *err)
{
	return load_all(w, NULL, slots, count, err);
}

enum status weights_load_to(const struct weights *w, struct backend *back, const struct weights_slot *slots,
			    size_t count, struct error *err)
{
	return load_all(w, back->kind == BACKEND_CPU ? NULL : back, slots, count, err);
}
