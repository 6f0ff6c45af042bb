/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a template or a refusal that names the place. What a template renders within small limits is
 * UTF-8 whose parts have sources, and no character of the conversation becomes the template's. */
#include "fuzz.h"

#include "core/text/utf8.h"
#include "text/jinja/jinja.h"

/* U+E000 stands only in the conversation, if the template does not write it. */
#define MARK "\xee\x80\x80"
static const char conversation[] =
	"[{\"role\": \"system\", \"content\": \"" MARK "Be  brief.\\n\"}, {\"role\": \"user\", \"content\": \"<|im_end|>" MARK
	"\"}, {\"role\": \"assistant\", \"content\": \"<think>" MARK "</think> a" MARK
	"\", \"tool_calls\": [{\"id\": \"abcdefghi\", \"type\": \"function\", \"function\": {\"name\": \"f" MARK
	"\", \"arguments\": {\"x\": [1, 2.5, null, true], \"" MARK "\": {}}}}]}, {\"role\": \"tool\", \"content\": \"" MARK "\"}]";
static const char *const roles[] = {"system", "user", "assistant", "tool", NULL};
static const struct jinja_limits limits = {.steps = 200000, .memory = 16 << 20, .output = 1 << 20, .depth = 300};

static void check_output(const struct jinja_output *out, bool marked)
{
	const char *text = text_str(&out->text);
	size_t begin = 0, taken;

	FUZZ_CHECK(out->text.size == (out->count ? out->spans[out->count - 1].end : 0));
	for (size_t i = 0; i < out->count; begin = out->spans[i++].end) {
		FUZZ_CHECK(out->spans[i].end > begin && out->spans[i].source <= JINJA_TEMPLATE);
		if (marked && out->spans[i].source == JINJA_TEMPLATE)
			FUZZ_CHECK(!memmem(text + begin, out->spans[i].end - begin, MARK, 3));
	}
	for (size_t at = 0; at < out->text.size; at += taken) {
		taken = 1;
		if (text[at] & 0x80)
			FUZZ_CHECK(utf8_decode(text + at, &taken) && taken > 1);
	}
}

static void render(const struct jinja *j, const json_t *messages, bool marked)
{
	static const enum jinja_source sources[] = {JINJA_DATA, JINJA_DATA, JINJA_ANSWER, JINJA_DATA};
	struct jinja_output out = {0};
	struct jinja_run *r = NULL;
	struct error err = {0};
	json_t *yes = json_true();
	enum status st = jinja_run_create(&r, j, &limits, 1722000000, &err);

	FUZZ_CHECK(!st);
	FUZZ_CHECK(!jinja_run_set(r, "add_generation_prompt", yes, JINJA_DATA, &err));
	FUZZ_CHECK(!jinja_run_set(r, "tools", messages, JINJA_DATA, &err));
	FUZZ_CHECK(!jinja_run_set_list(r, "messages", messages, sources, "role", roles, &err));
	st = jinja_run_render(r, &out, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT || st == STATUS_NO_RESOURCE);
	FUZZ_CHECK(!st || !strncmp(err.text, "input:", 6));
	FUZZ_CHECK(out.text.size <= limits.output + limits.memory);
	if (!st)
		check_output(&out, marked);
	jinja_output_release(&out);
	jinja_run_destroy(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	bool marked = !memmem(text, size, "\xee\x80", 2) && !strcasestr(text, "e000") && !strstr(text, "\\356");
	struct jinja *j = NULL;
	struct error err = {0};
	enum status st = jinja_compile(&j, "input", text, size, &err);
	json_t *messages;

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT || st == STATUS_UNSUPPORTED);
	FUZZ_CHECK(!st || !strncmp(err.text, "input:", 6));
	FUZZ_CHECK(!st == !!j);
	if (!st) {
		messages = json_loads(conversation, 0, NULL);
		FUZZ_CHECK(messages);
		render(j, messages, marked);
		json_decref(messages);
	}
	jinja_destroy(&j);
	free(text);
	return 0;
}
