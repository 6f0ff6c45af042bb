/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a recording: recording.json (its description), host.json, and one file per vendor layer. */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/file/file.h"
#include "core/text/text.h"
#include "machine/facts/facts.h"
#include "machine/pseudonym.h"

/* Texts of several lines become lists of lines, so that each is a line of the file. */
static void split_lines(json_t *texts)
{
	const char *path;
	json_t *value;
	void *tmp;

	json_object_foreach_safe(texts, tmp, path, value)
	{
		const char *text = json_string_value(value);
		json_t *lines;

		if (!text || !strchr(text, '\n'))
			continue;
		lines = json_array();
		for (const char *p = text;; p++) {
			size_t n = strcspn(p, "\n");

			json_array_append_new(lines, json_stringn(p, n));
			p += n;
			if (!*p)
				break;
		}
		json_object_set_new(texts, path, lines);
	}
}

static enum status write_json(const char *dir, const char *name, const json_t *value, struct error *err)
{
	char path[PATH_MAX], *data = json_dumps(value, JSON_INDENT(1));
	struct text t = {0};
	enum status st;

	snprintf(path, sizeof(path), "%s/%s.json", dir, name);
	if (!data)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: out of memory", path);
	text_add(&t, data);
	text_add(&t, "\n");
	free(data);
	st = file_write(path, text_str(&t), t.size, err);
	text_release(&t);
	return st;
}

static enum status write_about(const char *dir, bool real_names, struct error *err)
{
	char taken[32];
	json_t *about;
	enum status st;

	clock_wall_text(taken, sizeof(taken));
	about = json_pack("{s:i,s:s,s:s,s:s,s:b}", "format", 1, "label", "", "taken", taken, "by",
			  "assay " ASSAY_VERSION, "pseudonyms", !real_names);
	st = write_json(dir, "recording", about, err);
	json_decref(about);
	return st;
}

/* Writes all layers; LAYER_HOST stands for the host's files. Names are collected from all layers before any
 * is written. */
static enum status write_layers(struct source *s, const char *dir, bool real_names, struct error *err)
{
	struct pseudonyms *p = real_names ? NULL : pseudonyms_new_once();
	enum status st = STATUS_OK;

	if (!real_names && !p)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: out of memory, or no random bits for pseudonyms", dir);
	for (int layer = LAYER_HOST; p && layer <= LAYER_SOFTWARE; layer++)
		pseudonyms_learn(p, layer ? source_raw_layer(s, (enum layer)layer) : source_raw_host(s));
	for (int layer = LAYER_HOST; !st && layer <= LAYER_SOFTWARE; layer++) {
		json_t *raw =
			json_deep_copy(layer ? source_raw_layer(s, (enum layer)layer) : source_raw_host(s));

		if (!raw)
			continue;
		if (p)
			pseudonyms_apply(p, raw);
		if (layer == LAYER_HOST)
			split_lines(json_object_get(raw, "text"));
		st = write_json(dir, layer_name((enum layer)layer), raw, err);
		json_decref(raw);
	}
	pseudonyms_free(p);
	return st;
}

enum status machine_record(struct machine **m, const char *dir, bool real_names,
			   const volatile sig_atomic_t *stop, const struct log *log, struct error *err)
{
	struct source *s = NULL;
	json_t *facts = NULL;
	char path[PATH_MAX];
	enum status st;

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, i ? "host.json" : "recording.json");
		if (!access(path, F_OK))
			return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
					       "%s: contains a recording already; choose another folder",
					       dir);
	}
	st = real_names ? file_make_private_dir(dir, err) : file_make_dir(dir, err);
	if (!st)
		st = source_live(&s, log, err);
	if (st)
		goto out;
	source_heed(s, stop);
	facts = facts_read(s, &(struct machine_scope){.up_to = LAYER_SOFTWARE});
	(void)source_value(s, "user"); /* read so that its pseudonym is known */
	if (source_stopped(s, err)) {
		st = STATUS_CANCELLED;
		goto out;
	}
	st = write_layers(s, dir, real_names, err);
	if (!st)
		st = write_about(dir, real_names, err);
	if (!st && m)
		st = machine_from_json(m, facts, err);
out:
	json_decref(facts);
	source_close(s);
	return st;
}

json_t *machine_json_shared(const struct machine *m)
{
	struct pseudonyms *p = pseudonyms_new();
	json_t *copy = p ? json_deep_copy(machine_json(m)) : NULL;

	if (copy) {
		pseudonyms_learn(p, copy);
		pseudonyms_apply(p, copy);
	}
	pseudonyms_free(p);
	return copy;
}
