/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run/inputs.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/file/mapped.h"
#include "core/json/member.h"
#include "model/files/fingerprint.h"
#include "model/files/gguf/gguf.h"
#include "train/data/data.h"

static const double slow_tokenising = 2.5e5; /* B/s: a busy core's speed */

static enum status check_row_files(const char *setting, const struct opt_words *files, double *bytes,
				   struct error *err)
{
	struct stat about;

	for (size_t i = 0; i < files->count; i++) {
		const char *path = files->word[i];

		if (stat(path, &about) || access(path, R_OK))
			return error_errno(err, errno, "data: %s: cannot read %s", setting, path);
		if (!S_ISREG(about.st_mode))
			return error_set(err, STATUS_BAD_INPUT, "data: %s: %s is not a regular file", setting,
					 path);
		*bytes += (double)about.st_size;
	}
	return STATUS_OK;
}

enum status inputs_ready(const struct config *c, struct shape *shape, double *load_s, struct error *err)
{
	double rows = 0;
	struct weights w;
	enum status st = weights_open(&w, c->model.name_or_path, err);

	if (st)
		return st;
	st = check_row_files("train", &c->data.train, &rows, err);
	if (!st)
		st = check_row_files("eval", &c->data.eval, &rows, err);
	if (!st)
		st = data_check(c, &w.shape, err);
	*shape = w.shape;
	*load_s = (double)weights_bytes(&w) / INPUTS_SLOW_DISK + rows / slow_tokenising;
	weights_release(&w);
	return st;
}

static enum status add(json_t *list, const char *what, const char *path, const char *sum, struct error *err)
{
	json_t *one = json_pack("{s:s, s:s, s:s}", "what", what, "path", path, "sum", sum);

	return one && !json_array_append_new(list, one)
		       ? STATUS_OK
		       : error_set(
				 err, STATUS_BAD_INPUT,
				 "%s: cannot record this file: its name is not UTF-8, or there is no memory",
				 path);
}

static enum status add_file(json_t *list, const char *what, const char *path, struct error *err)
{
	char sum[65];
	enum status st = file_sha256_of(sum, path, err);

	return st ? st : add(list, what, path, sum, err);
}

/* Sums everything in a GGUF file before the tensor data, which includes vocabulary and template. */
static enum status add_gguf(json_t *list, const struct gguf *g, struct error *err)
{
	const uint8_t *begin = g->metadata.map, *end = begin + g->metadata.map_size;
	char sum[65];

	for (size_t i = 0; i < g->tensor_count; i++)
		end = g->tensors[i].data < end ? g->tensors[i].data : end;
	file_sha256(sum, begin, (size_t)(end - begin));
	if (mapped_check(STATUS_OK, err))
		return STATUS_BAD_INPUT;
	return add(list, "tokenizer", g->metadata.path, sum, err);
}

/* Adds the named file, or the folder's files; and the files that the tokenizer reads next to it. */
static enum status add_tokenizer(json_t *list, const char *path, struct error *err)
{
	static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"};
	struct stat about;
	bool folder = !stat(path, &about) && S_ISDIR(about.st_mode);
	const char *slash = folder ? path + strlen(path) : strrchr(path, '/');
	enum status st = folder ? STATUS_OK : add_file(list, "tokenizer", path, err);
	char file[PATH_MAX];

	for (size_t i = !folder; i < sizeof(names) / sizeof(names[0]) && !st; i++) {
		snprintf(file, sizeof(file), "%.*s/%s", slash ? (int)(slash - path) : 1, slash ? path : ".",
			 names[i]);
		if (!access(file, F_OK))
			st = add_file(list, "tokenizer", file, err);
	}
	return st;
}

static enum status add_rows(json_t *list, const char *what, const struct opt_words *files, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < files->count && !st; i++)
		st = add_file(list, what, files->word[i], err);
	return st;
}

enum status inputs_read(json_t **out, const struct config *c, const struct weights *w, struct error *err)
{
	const char *tokenizer = c->model.tokenizer;
	char sum[FINGERPRINT_SIZE];
	enum status st = weights_fingerprint(sum, w, FINGERPRINT_BYTES, err);

	*out = json_array();
	if (!st)
		st = add(*out, "model", w->path, sum, err);
	if (!st)
		st = w->gguf && !tokenizer ? add_gguf(*out, w->gguf, err)
					   : add_tokenizer(*out, tokenizer ? tokenizer : w->path, err);
	if (!st)
		st = add_rows(*out, "training rows", &c->data.train, err);
	if (!st)
		st = add_rows(*out, "held-out rows", &c->data.eval, err);
	if (st) {
		json_decref(*out);
		*out = NULL;
	}
	return st;
}

const json_t *inputs_find(const json_t *list, const json_t *like)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		if (!strcmp(json_member_text(one, "what"), json_member_text(like, "what")) &&
		    !strcmp(json_member_text(one, "path"), json_member_text(like, "path")))
			return one;
	}
	return NULL;
}

static enum status differs(const json_t *one, const char *how, const char *run, struct error *err)
{
	return error_set(err, STATUS_BAD_INPUT,
			 "%.300s: the %s %s after %.100s was started; restore it, or start a new run",
			 json_member_text(one, "path"), json_member_text(one, "what"), how, run);
}

enum status inputs_check(const json_t *begun, const json_t *now, const char *run, struct error *err)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)now, i, one)
	{
		const json_t *was = inputs_find(begun, one);

		if (!was || strcmp(json_member_text(was, "sum"), json_member_text(one, "sum")))
			return differs(one, was ? "changed" : "appeared", run, err);
	}
	json_array_foreach((json_t *)begun, i, one)
	{
		if (!inputs_find(now, one))
			return differs(one, "disappeared", run, err);
	}
	return STATUS_OK;
}
