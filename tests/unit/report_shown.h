/* SPDX-License-Identifier: Apache-2.0 */
/* A run directory judged and rendered in every form, with real names. */
#ifndef TESTS_REPORT_SHOWN_H
#define TESTS_REPORT_SHOWN_H
#include "cmd/shared/judged.h"
#include "schema.h"

struct shown {
	struct judged j;
	struct text text[REPORT_CSV + 1];
};

static inline void shown_read(struct shown *s, const char *dir)
{
	static const struct judge_site nothing = {NULL, NULL};
	const struct report_style style = {.columns = 200};
	struct error err = {0};

	*s = (struct shown){.text = {{0}}};
	if (judged_read(&s->j, dir, NULL, &nothing, true, &err))
		fail_msg("%s", err.text);
	for (int f = REPORT_TEXT; f <= REPORT_CSV; f++)
		assert_int_equal(report_render(&s->text[f], (enum report_format)f, &s->j.in, &style, &err), STATUS_OK);
}

static inline void shown_release(struct shown *s)
{
	for (int f = REPORT_TEXT; f <= REPORT_CSV; f++)
		text_release(&s->text[f]);
	judged_release(&s->j);
}

/* On a terminal of 200 columns, in Markdown and on the page. */
static inline void shown_all_say(const struct shown *s, const char *what)
{
	for (int f = REPORT_TEXT; f <= REPORT_HTML; f++)
		if (!strstr(text_str(&s->text[f]), what))
			fail_msg("%s does not say \"%s\":\n%s", report_formats[f], what, text_str(&s->text[f]));
}

/* results.json fits its schema; *results is the caller's. */
static inline void shown_valid(const struct shown *s, json_t **results)
{
	json_t *schema = json_load_file(SOURCE_DIR "/docs/schema/results.schema.json", 0, NULL);
	char why[256] = "";

	*results = json_loads(text_str(&s->text[REPORT_JSON]), 0, NULL);
	assert_non_null(schema);
	assert_non_null(*results);
	if (!schema_valid(schema, *results, why, sizeof(why)))
		fail_msg("%s", why);
	json_decref(schema);
}
#endif
