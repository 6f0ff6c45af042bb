/* SPDX-License-Identifier: Apache-2.0 */
/* ladder.jsonl: the plan, then a line for each job that ended. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/ladder/ladder.h"
#include "core/file/file.h"
#include "core/json/member.h"

enum { SCHEMA_VERSION = 1, JOURNAL_MOST = 16 << 20 };

static const struct {
	const char *name;
	size_t at;
} fields[] = {
#define FIELD(name)                                                                                          \
	{                                                                                                    \
#name, offsetof(struct ladder_values, name)                                                  \
	}
	FIELD(tokens_per_s),	FIELD(step_s),	  FIELD(half_width_share),    FIELD(memory_bytes),
	FIELD(sm_active_share), FIELD(power_w),	  FIELD(tensor_active_share), FIELD(mfu),
	FIELD(loss_first),	FIELD(loss_last), FIELD(steady_steps),
#undef FIELD
};

json_t *ladder_values_json(const struct ladder_values *v)
{
	json_t *out = json_object();

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const double value = *(const double *)((const char *)v + fields[i].at);

		if (isfinite(value))
			json_object_set_new(out, fields[i].name, json_real(value));
	}
	return out;
}

static void take_values(struct ladder_values *v, const json_t *from)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		*(double *)((char *)v + fields[i].at) = json_member_number(from, fields[i].name);
}

static void journal_path(char out[PATH_MAX + 32], const char *dir)
{
	snprintf(out, PATH_MAX + 32, "%s/ladder.jsonl", dir);
}

/* Appends a line and waits until it is on the disk. Takes ownership of the line. */
static enum status append(const struct ladder *l, json_t *line, struct error *err)
{
	char path[PATH_MAX + 32],
		*text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
	size_t size = text ? strlen(text) : 0;
	int fd;
	enum status st = STATUS_OK;

	json_decref(line);
	if (!text)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a line of ladder.jsonl");
	text[size++] = '\n'; /* in the place of the NUL */
	journal_path(path, l->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0 || write(fd, text, size) != (ssize_t)size || fsync(fd))
		st = error_errno(err, errno, "cannot write %s", path);
	if (fd >= 0)
		close(fd);
	free(text);
	return st;
}

enum status ladder_journal_begin(const struct ladder *l, struct error *err)
{
	const struct ladder_plan *p = &l->plan;

	return append(
		l,
		json_pack(
			"{s:s, s:i, s:s, s:b, s:i, s:i, s:b, s:b, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:s}",
			"schema", "assay.ladder", "schema_version", SCHEMA_VERSION, "began", p->began, "gpu",
			p->gpu, "cc", (int)p->cc, "gpus", (int)p->gpus, "random_weights", p->random, "own",
			p->own, "model", p->model, "loss_model", p->loss_model, "config", p->given, "shape",
			p->shape, "steps", (json_int_t)p->steps, "rounds", (json_int_t)p->rounds, "length",
			(json_int_t)p->length, "within_s", p->within_s, "host", p->host),
		err);
}

enum status ladder_journal_add(const struct ladder *l, unsigned round, enum rung_id id, struct error *err)
{
	const struct ladder_job *job = &l->job[round][id];
	json_t *line =
		json_pack("{s:i, s:s, s:i, s:f, s:o}", "round", (int)round, "rung", rung_list[id].word,
			  "code", job->code, "seconds", job->seconds, "values", ladder_values_json(&job->v));

	if (*job->why)
		json_object_set_new(line, "why", json_string(job->why));
	if (job->idle)
		json_object_set_new(line, "no_effect", json_true());
	return append(l, line, err);
}

static bool take_plan(struct ladder_plan *p, const json_t *line)
{
	if (strcmp(json_member_text(line, "schema"), "assay.ladder") ||
	    json_integer_value(json_object_get(line, "schema_version")) != SCHEMA_VERSION)
		return false;
	p->gpu = json_is_true(json_object_get(line, "gpu"));
	p->cc = (unsigned)json_integer_value(json_object_get(line, "cc"));
	p->gpus = (unsigned)json_integer_value(json_object_get(line, "gpus"));
	p->random = json_is_true(json_object_get(line, "random_weights"));
	p->own = json_is_true(json_object_get(line, "own"));
	text_copy(p->model, sizeof(p->model), json_member_text(line, "model"));
	text_copy(p->loss_model, sizeof(p->loss_model), json_member_text(line, "loss_model"));
	text_copy(p->given, sizeof(p->given), json_member_text(line, "config"));
	text_copy(p->shape, sizeof(p->shape), json_member_text(line, "shape"));
	text_copy(p->host, sizeof(p->host), json_member_text(line, "host"));
	text_copy(p->began, sizeof(p->began), json_member_text(line, "began"));
	p->steps = (uint64_t)json_integer_value(json_object_get(line, "steps"));
	p->rounds = (uint64_t)json_integer_value(json_object_get(line, "rounds"));
	p->length = (uint64_t)json_integer_value(json_object_get(line, "length"));
	p->within_s = json_member_number(line, "within_s");
	return p->steps > 0 && p->rounds > 0 && p->rounds <= LADDER_ROUNDS && p->within_s >= 0;
}

static void take_job(struct ladder *l, const json_t *line)
{
	const json_int_t round = json_integer_value(json_object_get(line, "round"));
	int id = 0;

	while (id < RUNG_COUNT && strcmp(rung_list[id].word, json_member_text(line, "rung")))
		id++;
	if (id == RUNG_COUNT || round < 0 || round > ROUND_LOSS)
		return;
	l->job[round][id] = (struct ladder_job){
		.ended = true,
		.idle = json_is_true(json_object_get(line, "no_effect")),
		.code = (int)json_integer_value(json_object_get(line, "code")),
		.seconds = json_member_number(line, "seconds"),
	};
	text_copy(l->job[round][id].why, sizeof(l->job[round][id].why), json_member_text(line, "why"));
	take_values(&l->job[round][id].v, json_object_get(line, "values"));
}

/* Drops a line that was cut off, so that the next one begins on its own. */
static enum status cut(const char *path, size_t size, struct error *err)
{
	return truncate(path, (off_t)size) ? error_errno(err, errno, "cannot shorten %s", path) : STATUS_OK;
}

enum status ladder_journal_read(struct ladder *l, const char *dir, struct error *err)
{
	char path[PATH_MAX + 32], *text = NULL;
	size_t size = 0, at = 0, lines = 0;
	struct error why = {0};
	bool is_ladder = false;

	journal_path(path, dir);
	if (file_read(&text, &size, path, JOURNAL_MOST, &why))
		return error_set(err, STATUS_BAD_INPUT, "%.300s has no ladder to continue: %s", dir,
				 why.text);
	while (at < size) {
		const char *end = memchr(text + at, '\n', size - at);
		json_t *line = end ? json_loadb(text + at, (size_t)(end - text) - at, 0, NULL) : NULL;

		if (!line)
			break;
		if (!lines++)
			is_ladder = take_plan(&l->plan, line);
		else
			take_job(l, line);
		json_decref(line);
		at = (size_t)(end - text) + 1;
	}
	free(text);
	if (!is_ladder)
		return error_set(err, STATUS_BAD_INPUT, "%s: its first line is not the plan of a ladder",
				 path);
	return at < size ? cut(path, at, err) : STATUS_OK;
}
