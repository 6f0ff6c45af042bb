/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as lines of a stream: a wrong line changes nothing; what is taken can be written, read again and
 * is then the same. */
#include "fuzz.h"

#include "watch/state.h"

static void check_entity(const struct watch_state *s, const struct watch_entity *e)
{
	enum catalogue first = catalogue_first(e->scope);

	FUZZ_CHECK(e->id < s->count && e->of < WATCH_ENTITIES_MAX && e->label_count <= WATCH_LABELS_MAX);
	FUZZ_CHECK(e->source < WATCH_SOURCES_MAX);
	for (unsigned i = 0; i < e->label_count; i++)
		FUZZ_CHECK(strlen(e->label[i].value) < WATCH_TEXT_MAX && !strchr(e->label[i].value, '\n') &&
			   !strchr(e->label[i].value, '\x1b'));
	for (int c = (int)first; c < CATALOGUE_COUNT && catalogue_row((enum catalogue)c)->scope == e->scope;
	     c++) {
		double rate;

		(void)watch_get(e, (enum catalogue)c);
		(void)watch_why(e, (enum catalogue)c);
		if (watch_rate(&rate, e, (enum catalogue)c))
			FUZZ_CHECK(rate >= 0);
	}
	FUZZ_CHECK(watch_age(s, e, 0) >= -1);
}

static void check_state(const struct watch_state *s)
{
	FUZZ_CHECK(s->count <= WATCH_ENTITIES_MAX && s->source_count <= WATCH_SOURCES_MAX);
	FUZZ_CHECK(s->bytes <= WATCH_BYTES_MAX + WATCH_LINE_MAX * 8);
	for (uint32_t i = 0; i < s->count; i++)
		if (s->entity[i].scope < METRIC_SCOPE_COUNT)
			check_entity(s, &s->entity[i]);
}

static void take_lines(struct watch_state *s, const char *text, bool must)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		struct error err = {0};
		enum status st;

		end = text + strcspn(text, "\n");
		st = watch_state_line(s, text, (size_t)(end - text), &err);
		FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT || st == STATUS_NO_RESOURCE);
		FUZZ_CHECK((st == STATUS_OK) == !*err.text);
		FUZZ_CHECK(!must || st == STATUS_OK);
		if (st == STATUS_NO_RESOURCE)
			break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct watch_state s = {0}, copy = {0};
	struct text first = {0}, second = {0};
	char *text;

	if (size > 65536)
		return 0;
	text = fuzz_text(data, size);
	for (int c = 0; c < CATALOGUE_COUNT; c += 3)
		watch_state_keep(&s, (enum catalogue)c);
	take_lines(&s, text, false);
	check_state(&s);
	watch_state_write(&s, &first);
	take_lines(&copy, text_str(&first), true);
	check_state(&copy);
	watch_state_write(&copy, &second);
	FUZZ_CHECK(!strcmp(text_str(&first), text_str(&second)));
	watch_state_release(&s);
	FUZZ_CHECK(!s.bytes && !s.histories);
	watch_state_release(&copy);
	text_release(&first);
	text_release(&second);
	free(text);
	return 0;
}
