/* SPDX-License-Identifier: Apache-2.0 */
/* Options of probe attention by words, as a suite has them: "seq=24 mask=causal". */
#ifndef TESTS_UNIT_ATTENTION_WORDS_H
#define TESTS_UNIT_ATTENTION_WORDS_H
#include "test.h"
#include "probe/attention/attention.h"

extern const struct probe probe_attention;

/* One set of options at a time: they point into this function's text. */
static inline enum status attention_words(struct attention_opts *o, const char *words, struct error *err)
{
	static char text[512];
	char *save = NULL;
	enum status st;

	*err = (struct error){0};
	st = opt_defaults(&probe_attention.opts, o, err);
	snprintf(text, sizeof(text), "%s", words);
	for (char *word = strtok_r(text, " ", &save); !st && word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		assert_non_null(value);
		*value = '\0';
		st = opt_set(&probe_attention.opts, o, word, value + 1, "test", err);
	}
	return st ? st : probe_attention.check(o, err);
}
#endif
