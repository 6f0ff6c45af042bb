/* SPDX-License-Identifier: Apache-2.0 */
/* A journal in a scratch folder, on a clock of the test's own. */
#ifndef TESTS_JOURNAL_BED_H
#define TESTS_JOURNAL_BED_H
#include "journal/journal.h"
#include "fake_clock.h"
#include "scratch.h"

static struct fake_clock fake;

static inline void append_number(struct journal *j, unsigned i, enum status expected, struct error *err)
{
	json_t *body = json_pack("{s:i}", "case", (int)i);

	assert_int_equal(journal_append(j, i ? JOURNAL_BEGIN : JOURNAL_OPEN, body, err), expected);
	json_decref(body);
}

struct seen {
	unsigned count, stop_after;
	uint64_t t_last;
};

static inline int see(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body)
{
	struct seen *s = arg;

	assert_int_equal(type, s->count ? JOURNAL_BEGIN : JOURNAL_OPEN);
	assert_int_equal(json_integer_value(json_object_get(body, "case")), s->count);
	assert_null(json_object_get(body, "n"));
	s->count++;
	s->t_last = t_ns;
	return s->count == s->stop_after;
}

static inline void path_in(char path[PATH_MAX], const char *dir)
{
	assert_true(snprintf(path, PATH_MAX, "%s/%s", dir, JOURNAL_FILE) < PATH_MAX);
}
#endif
