/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are rows or a refusal with file and line; a row that is a conversation can be rendered by every
 * template. */
#include "fuzz.h"

#include "text/chat/template.h"
#include "data/rows/rows.h"

/* Parts follow one another to the end of the text. */
static void check_parts(const struct template_text *text)
{
	size_t begin = 0;

	for (size_t i = 0; i < text->count; begin = text->parts[i++].end)
		FUZZ_CHECK(text->parts[i].end > begin);
	FUZZ_CHECK(begin == text->text.size);
}

static void render(const struct chat *chat)
{
	for (size_t i = 1; template_names[i]; i++) {
		const struct template_ask ask = {.generation_prompt = true, .no_thinking = true};
		const struct template *t = NULL;
		struct template_text text = {0};
		struct error err = {0};
		enum status st = template_find(&t, template_names[i], "chat_template", NULL, &err);

		FUZZ_CHECK(!st);
		st = template_render(t, chat, &ask, &text, &err);
		FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
		if (!st)
			check_parts(&text);
		template_text_release(&text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct error err = {0};
	struct rows rows;
	enum status st = rows_scan(&rows, "input", text, size, &err);

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(!st || !strncmp(err.text, "input:", 6));
	for (size_t i = 0; !st && i < rows.count && i < 64; i++) {
		struct error why = {0};
		struct chat chat;
		enum status read = rows_read(&rows, i, ROWS_AUTO, &chat, &why);

		FUZZ_CHECK(read == STATUS_OK || read == STATUS_BAD_INPUT);
		FUZZ_CHECK(!read || !strncmp(why.text, "input:", 6));
		if (read)
			continue;
		render(&chat);
		chat_release(&chat);
	}
	if (!st)
		rows_release(&rows);
	free(text);
	return 0;
}
