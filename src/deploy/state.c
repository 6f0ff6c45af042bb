/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a deployment in its folder: DEPLOY_FILE. */
#include <stdlib.h>
#include "core/file/file.h"
#include "core/json/file.h"
#include "core/math/random.h"
#include "deploy/deploy.h"

enum { SCHEMA = 1, FILE_MOST = 16 << 20 };

#define X(id, name, text) name,
static const char *const names[HOST_STATE_COUNT] = {HOST_STATES(X)};
#undef X

const char *host_state_name(enum host_state s)
{
	return (unsigned)s < HOST_STATE_COUNT ? names[s] : "unknown";
}

static enum status no_memory(const struct deploy *d, struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the state of %s",
			       d->folder);
}

void deploy_host_folder(char out[PATH_MAX], const struct deploy *d, const struct deploy_host *h)
{
	snprintf(out, PATH_MAX, "%.3700s/hosts/%.256s", d->folder, h->name);
}

/* A host's name becomes a folder, which these cannot. */
static bool is_dots(const char *name)
{
	return !name[strspn(name, ".")];
}

enum status deploy_hosts(struct deploy *d, const struct hosts *hosts, struct error *err)
{
	d->host = calloc(hosts->count ? hosts->count : 1, sizeof(*d->host));
	if (!d->host)
		return no_memory(d, err);
	for (; d->count < hosts->count; d->count++) {
		struct deploy_host *h = &d->host[d->count];

		if (is_dots(hosts->name[d->count]))
			return error_set(err, STATUS_BAD_INPUT, "\"%s\" is no host name",
					 hosts->name[d->count]);
		*h = (struct deploy_host){.name = hosts->name[d->count], .exit_code = -1};
		if (!random_hex(h->run, sizeof(h->run)))
			return error_set(err, STATUS_UNAVAILABLE,
					 "cannot read random bytes for the names of runs");
	}
	return STATUS_OK;
}

static json_t *words_json(const struct opt_words *w)
{
	json_t *a = json_array();

	for (size_t i = 0; i < w->count; i++)
		json_array_append_new(a, json_string(w->word[i]));
	return a;
}

enum status deploy_save(struct deploy *d, struct error *err)
{
	const struct deploy_job *j = &d->job;
	json_t *hosts = json_array(), *root;

	for (size_t i = 0; i < d->count; i++) {
		const struct deploy_host *h = &d->host[i];
		json_t *one = json_pack("{s:s, s:s, s:s}", "name", h->name, "run", h->run, "state",
					host_state_name(h->state));

		if (h->exit_code >= 0)
			json_object_set_new(one, "exit_code", json_integer(h->exit_code));
		if (*h->reason)
			json_object_set_new(one, "reason", json_string(h->reason));
		json_array_append_new(hosts, one);
	}
	root = json_pack("{s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:b, s:b, s:I, s:s*, s:s*, s:o}", "schema",
			 SCHEMA, "assay", ASSAY_VERSION, "bundle", j->bundle, "bundle_id", j->id, "command",
			 words_json(&j->words), "env", words_json(&j->env), "send", words_json(&j->send),
			 "accept_new", j->accept_new, "keep", j->keep, "fetch_most",
			 (json_int_t)j->fetch_most, "ssh_config", j->ssh_config, "remote_dir", j->remote_dir,
			 "hosts", hosts);
	d->changed = false;
	return json_file_write(d->folder, DEPLOY_FILE, root, JSON_INDENT(1), err);
}

static enum status damaged(const struct deploy *d, const char *what, struct error *err)
{
	return error_set(err, STATUS_BAD_INPUT, "%s/" DEPLOY_FILE ": %s", d->folder, what);
}

static enum status load_words(struct opt_words *w, const struct deploy *d, const char *key, struct error *err)
{
	const json_t *a = json_object_get(d->saved, key);
	size_t count = json_array_size(a);
	const char **words = calloc(count + 1, sizeof(*words));

	if (!words)
		return no_memory(d, err);
	*w = (struct opt_words){words, count};
	for (size_t i = 0; i < count; i++) {
		words[i] = json_string_value(json_array_get(a, i));
		if (!words[i])
			return damaged(d, "a word of its lists is no text", err);
	}
	return json_is_array(a) ? STATUS_OK : damaged(d, "a list of words is missing", err);
}

static bool is_hex(const char *s, size_t size)
{
	return s && strlen(s) == size && !s[strspn(s, "0123456789abcdef")];
}

/* One host, and not a list or a range of hosts; no other host has its folder. */
static enum status check_name(const struct deploy *d, const char *name, struct error *err)
{
	struct error why = {0};
	struct hosts h = {0};
	enum status st = hosts_parse(&h, name, "a host", &why);

	if (st)
		st = damaged(d, why.text, err);
	else if (h.count != 1 || strcmp(h.name[0], name) || is_dots(name))
		st = damaged(d, "a name is not that of one host", err);
	for (size_t i = 0; i < d->count && !st; i++)
		if (!strcmp(d->host[i].name, name))
			st = damaged(d, "a host is listed twice", err);
	hosts_release(&h);
	return st;
}

/* -1: the host has no exit code. */
static bool take_code(int *code, const json_t *saved)
{
	json_int_t value = saved ? json_integer_value(saved) : -1;

	*code = (int)value;
	return !saved || (json_is_integer(saved) && value >= 0 && value <= 255);
}

static enum status load_host(struct deploy *d, const json_t *one, struct error *err)
{
	struct deploy_host *h = &d->host[d->count];
	const char *name = json_string_value(json_object_get(one, "name"));
	const char *run = json_string_value(json_object_get(one, "run"));
	const char *state = json_string_value(json_object_get(one, "state"));
	const char *reason = json_string_value(json_object_get(one, "reason"));
	enum status st;

	if (!name || !is_hex(run, HOST_RUN - 1) || !state)
		return damaged(d, "a host has no name, run or state", err);
	st = check_name(d, name, err);
	if (st)
		return st;
	*h = (struct deploy_host){.name = name};
	if (!take_code(&h->exit_code, json_object_get(one, "exit_code")))
		return damaged(d, "an exit code is not from 0 to 255", err);
	text_copy(h->run, sizeof(h->run), run);
	text_copy(h->reason, sizeof(h->reason), reason ? reason : "");
	h->state = HOST_STATE_COUNT;
	for (unsigned i = 0; i < HOST_STATE_COUNT; i++)
		if (!strcmp(state, names[i]))
			h->state = (enum host_state)i;
	d->count++;
	return h->state < HOST_STATE_COUNT ? STATUS_OK : damaged(d, "a host has an unknown state", err);
}

enum status deploy_load(struct deploy *d, struct error *err)
{
	struct deploy_job *j = &d->job;
	const json_t *hosts;
	char path[PATH_MAX];
	const char *id;
	enum status st;

	snprintf(path, sizeof(path), "%.4000s/" DEPLOY_FILE, d->folder);
	st = json_file_read(&d->saved, path, FILE_MOST, err);
	if (st) {
		if (err)
			err->status = STATUS_BAD_INPUT;
		return STATUS_BAD_INPUT;
	}
	hosts = json_object_get(d->saved, "hosts");
	id = json_string_value(json_object_get(d->saved, "bundle_id"));
	j->bundle = json_string_value(json_object_get(d->saved, "bundle"));
	j->ssh_config = json_string_value(json_object_get(d->saved, "ssh_config"));
	j->remote_dir = json_string_value(json_object_get(d->saved, "remote_dir"));
	j->accept_new = json_is_true(json_object_get(d->saved, "accept_new"));
	j->keep = json_is_true(json_object_get(d->saved, "keep"));
	j->fetch_most = (uint64_t)json_integer_value(json_object_get(d->saved, "fetch_most"));
	if (json_integer_value(json_object_get(d->saved, "schema")) != SCHEMA)
		return damaged(d, "it has a schema that this version of assay does not know", err);
	if (json_integer_value(json_object_get(d->saved, "fetch_most")) < 0)
		return damaged(d, "the limit of bytes is negative", err);
	if (!j->bundle || !is_hex(id, 64) || !json_array_size(hosts) || json_array_size(hosts) > HOSTS_MAX)
		return damaged(d, "the bundle or the hosts are missing", err);
	text_copy(j->id, sizeof(j->id), id);
	st = load_words(&j->words, d, "command", err);
	if (!st)
		st = load_words(&j->env, d, "env", err);
	if (!st)
		st = load_words(&j->send, d, "send", err);
	d->host = calloc(json_array_size(hosts), sizeof(*d->host));
	if (!st && !d->host)
		st = no_memory(d, err);
	for (size_t i = 0; i < json_array_size(hosts) && !st; i++)
		st = load_host(d, json_array_get(hosts, i), err);
	return st;
}

void deploy_release(struct deploy *d)
{
	for (size_t i = 0; i < d->count; i++) {
		talk_end(&d->host[i].talk);
		free(d->host[i].have);
	}
	free(d->host);
	bundle_release(&d->bundle);
	if (d->saved) {
		free((void *)d->job.words.word);
		free((void *)d->job.env.word);
		free((void *)d->job.send.word);
	}
	json_decref(d->saved);
	*d = (struct deploy){0};
}
