/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/thought.h"

/* White space at the end counts for nothing: it belongs to no mark. */
static bool ends_with(const struct text *text, const char *end)
{
	size_t size = strlen(end), at = text->size;

	while (at && (text->data[at - 1] == '\n' || text->data[at - 1] == ' '))
		at--;
	return at >= size && !memcmp(text->data + at - size, end, size);
}

/* Whether a prompt ends with a closed thought. Models that can leave out their thoughts get an empty one
 * then. */
static bool ends_thought(const struct template *t, bool no_thinking)
{
	const struct template_ask ask = {
		.generation_prompt = true, .no_thinking = no_thinking, .setting = "--chat-template"};
	struct template_text text = {0};
	struct error err = {0};
	struct chat chat;
	bool ends = false;

	if (chat_read(&chat, json_pack("{s[{ssss}]}", "messages", "role", "user", "content", "a"), &err))
		return false;
	if (!template_render(t, &chat, &ask, &text, &err))
		ends = ends_with(&text.text, "</think>");
	template_text_release(&text);
	chat_release(&chat);
	return ends;
}

bool thought_comes_first(const struct template *t)
{
	return ends_thought(t, true) && !ends_thought(t, false);
}

enum thought thought_at_end(const struct text *prompt, bool comes_first)
{
	if (ends_with(prompt, "<think>"))
		return THOUGHT_OPEN;
	return comes_first && !ends_with(prompt, "</think>") ? THOUGHT_LIKELY : THOUGHT_NONE;
}
