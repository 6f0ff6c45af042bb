/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run/server.h"
#include <stdio.h>
#include <string.h>

enum { WORDS_MOST = 200, LOADING_MS = 200, LIMITED_MS = 1000 };

enum status load_server_base(struct load_server *s, const char *url, struct error *err)
{
	size_t size = strlen(url);

	*s = (struct load_server){0};
	while (size && url[size - 1] == '/')
		size--;
	if (size > 3 && !memcmp(url + size - 3, "/v1", 3))
		size -= 3;
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return error_set(err, STATUS_BAD_INPUT,
				 "%.200s: not an address; it must begin with http:// or https://", url);
	if (size >= sizeof(s->base))
		return error_set(err, STATUS_BAD_INPUT, "%.60s..: the address is longer than %zu bytes", url,
				 sizeof(s->base) - 1);
	memcpy(s->base, url, size);
	return STATUS_OK;
}

/* The server's own words: the message of an error in OpenAI's form, or the begin of the body. */
static void words_of(const struct text *body, char *out, size_t size)
{
	json_t *root = json_loadb(text_str(body), body->size, 0, NULL);
	const json_t *error = json_object_get(root, "error");
	const char *text = json_string_value(json_object_get(error, "message"));

	if (!text)
		text = json_string_value(json_object_get(root, "message"));
	if (!text)
		text = json_string_value(error);
	snprintf(out, size, "%.*s", WORDS_MOST, text ? text : text_str(body));
	for (char *c = out; *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	json_decref(root);
}

static enum status refused(const struct load_server *s, const char *path, long status,
			   const struct text *body, struct error *err)
{
	const bool for_later = status >= 500 || status == 429;
	char words[WORDS_MOST + 1];

	words_of(body, words, sizeof(words));
	if (status == 401 || status == 403)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_PERMISSION,
			"%s%s: the server wants a valid API key (status %ld): use --api-key-file", s->base,
			path, status);
	if (status >= 300 && status < 400)
		return error_set_cause(
			err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
			"%s%s: status %ld, a redirect, which is not followed: give the address of the server itself",
			s->base, path, status);
	return error_set_cause(err, for_later ? STATUS_UNAVAILABLE : STATUS_BAD_INPUT,
			       for_later ? CAUSE_SERVER_UNREACHABLE : CAUSE_BAD_INPUT, "%s%s: status %ld%s%s",
			       s->base, path, status, *words ? ": " : ", without a body", words);
}

/* Finds the entry of the list for a name, or the first one. */
static const json_t *entry_of(const json_t *list, const char *model)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry)
	{
		const char *id = json_string_value(json_object_get(entry, "id"));

		if (id && (!model || !strcmp(id, model)))
			return entry;
	}
	return NULL;
}

static enum status take_models(struct load_server *s, const struct text *body, const char *model,
			       struct error *err)
{
	json_t *root = json_loadb(text_str(body), body->size, 0, NULL);
	const json_t *list = json_object_get(root, "data"), *entry = entry_of(list, model);
	const bool is_list = json_is_array(list);
	const json_t *context = json_object_get(entry, "max_model_len");

	if (entry)
		snprintf(s->model, sizeof(s->model), "%s", json_string_value(json_object_get(entry, "id")));
	s->context = json_integer_value(context);
	json_decref(root);
	return *s->model
		       ? STATUS_OK
		       : error_set(
				 err, STATUS_BAD_INPUT,
				 is_list ? "%s/v1/models lists no model: name the one to use with --name"
					 : "%s/v1/models is no list of models, so this may be no server of OpenAI's "
					   "API: check the address, or name the model with --name",
				 s->base);
}

enum status load_server_meet(struct load_server *s, struct http *h, const char *model, struct error *err)
{
	struct text body = {0};
	long status;
	enum status st = http_meet(h, "/v1/models", &status, &body, err);

	if (model)
		snprintf(s->model, sizeof(s->model), "%s", model);
	if (!st && (status == 401 || status == 403 || (status != 200 && !model)))
		st = refused(s, "/v1/models", status, &body, err);
	if (!st && status == 200)
		st = take_models(s, &body, model, err);
	text_release(&body);
	return st;
}

enum status load_server_try(const struct load_server *s, const struct http *h, const char *path,
			    const struct text *body, unsigned *again_ms, struct error *err)
{
	struct text answer = {0};
	long status;
	enum status st = http_post(h, path, body, &status, &answer, err);

	*again_ms = st ? 0 : status == 503 ? LOADING_MS : status == 429 ? LIMITED_MS : 0;
	if (!st && status != 200)
		st = refused(s, path, status, &answer, err);
	text_release(&answer);
	return st;
}
