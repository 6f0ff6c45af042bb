/* SPDX-License-Identifier: Apache-2.0 */
#include "load/content/internal.h"

enum status load_dialogue_create(struct load_dialogue **out, struct error *err)
{
	struct load_dialogue *d = calloc(1, sizeof(*d));

	*out = d;
	return d ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "a conversation");
}

void load_dialogue_destroy(struct load_dialogue **d)
{
	if (*d) {
		json_decref((*d)->messages);
		json_decref((*d)->tools);
		text_release(&(*d)->prompt);
		free(*d);
	}
	*d = NULL;
}

enum status dialogue_begin(struct load_dialogue *d, const json_t *tools, struct error *err)
{
	json_decref(d->messages);
	json_decref(d->tools);
	d->prompt.size = 0;
	d->messages = json_array();
	d->tools = tools ? json_deep_copy(tools) : NULL;
	if (!d->messages || (tools && !d->tools))
		return error_set(err, STATUS_NO_RESOURCE, "a conversation");
	return STATUS_OK;
}

enum status dialogue_add(struct load_dialogue *d, const char *role, const char *text, size_t size,
			 struct error *err)
{
	json_t *content = json_stringn(text, size), *message;

	if (!content)
		return error_set(err, STATUS_BAD_INPUT, "the text of the role %s is not UTF-8", role);
	/* a completion's prompt is the text of all roles, whose parts are separated like words */
	if (d->prompt.size && strcmp(role, "assistant") != 0)
		text_add(&d->prompt, " ");
	text_add_bytes(&d->prompt, text, size);
	message = json_pack("{ss sO}", "role", role, "content", content);
	json_decref(content);
	if (json_array_append_new(d->messages, message) || d->prompt.failed)
		return error_set(err, STATUS_NO_RESOURCE, "a message");
	return STATUS_OK;
}

enum status load_dialogue_answer(struct load_dialogue *d, const char *text, size_t size, struct error *err)
{
	return dialogue_add(d, "assistant", text, size, err);
}
