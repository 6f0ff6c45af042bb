/* SPDX-License-Identifier: Apache-2.0 */
/* Any keys and sizes over any state: the first line is keys, the others are a stream of a node. Every screen holds only
 * characters that do not steer a terminal. Bytes from 0x80 on are special keys, clicks and sizes. */
#include "fuzz.h"

#include "core/text/utf8.h"
#include "watch/screen/view.h"

enum { KEYS_MOST = 48, NODES = 2 };

static void take_lines(struct watch_state *s, const char *text)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		struct error err = {0};

		end = text + strcspn(text, "\n");
		watch_state_line(s, text, (size_t)(end - text), &err);
	}
}

static void check(const struct screen *s, const struct screen_view *v)
{
	struct text plain = {0};

	for (size_t i = 0; i < (size_t)s->columns * s->rows; i++)
		FUZZ_CHECK(!s->cell[i].code || !utf8_is_control(s->cell[i].code));
	for (unsigned y = 0; y < s->rows; y++)
		FUZZ_CHECK(s->cell[(size_t)y * s->columns].code); /* no row begins with half a character */
	screen_text(&plain, s, SCREEN_THEME_mono, SCREEN_MONO);
	FUZZ_CHECK(!plain.failed && !strchr(text_str(&plain), '\x1b'));
	FUZZ_CHECK(v->node < NODES && v->sort < SCREEN_SORT_COUNT && v->theme < SCREEN_THEME_COUNT);
	FUZZ_CHECK(v->at >= 0 && v->at <= v->length);
	text_release(&plain);
}

static struct screen_event event_of(uint8_t byte, uint8_t next)
{
	struct screen_event e = {byte, next % 130u, next / 4u};

	if (byte >= 0x80)
		e.key = SCREEN_KEY_UP + byte % (SCREEN_KEY_COUNT - SCREEN_KEY_UP);
	return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	size_t keys = strcspn(text, "\n");
	struct watch_state state = {0}, none = {0};
	const struct screen_node nodes[NODES] = {{.name = "", .state = &state, .local = true},
						 {.name = "other", .state = &none, .why = "no answer"}};
	struct screen_view v = {.length = 100, .lines = text, .title = "text"};
	struct screen s = {0};
	struct error err = {0};

	for (enum catalogue c = 0; c < CATALOGUE_COUNT; c++)
		watch_state_keep(&state, c);
	take_lines(&state, text[keys] ? text + keys + 1 : "");
	v.page = keys ? data[0] % (SCREEN_LINES + 1) : SCREEN_NODE;
	v.replay = keys > 1 && data[1] & 1;
	FUZZ_CHECK(!screen_resize(&s, 80, 24, &err));
	for (size_t i = 2; i < keys && i < KEYS_MOST; i++) {
		uint8_t next = i + 1 < keys ? data[i + 1] : 0;

		if (data[i] == 0xff)
			FUZZ_CHECK(!screen_resize(&s, next, next / 3u, &err));
		screen_draw(&s, &v, nodes, NODES);
		check(&s, &v);
		if (screen_key(&v, nodes, NODES, &s, event_of(data[i], next)) == SCREEN_ASK_END)
			snprintf(v.question, sizeof(v.question), "end it?");
	}
	screen_draw(&s, &v, nodes, NODES);
	check(&s, &v);
	screen_release(&s);
	watch_state_release(&state);
	free(text);
	return 0;
}
