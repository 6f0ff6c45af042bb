/* SPDX-License-Identifier: Apache-2.0 */
/* Stop strings across pieces of text, held against a search in the whole text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "text/stop_text.h"

static struct stop_texts *texts_of(const char *const *stops, size_t count)
{
	struct stop_texts *s = NULL;
	struct error err = {0};

	if (stop_texts_create(&s, stops, count, &err))
		fail_msg("%s", err.text);
	return s;
}

static void expect(const char *const *stops, size_t count, const char *const *pieces, const char *shown, int found)
{
	struct stop_texts *texts = texts_of(stops, count);
	struct stop_stream s;
	struct text out = {0};

	assert_int_equal(stop_stream_begin(&s, texts, NULL), STATUS_OK);
	for (; *pieces; pieces++)
		stop_stream_add(&s, *pieces, strlen(*pieces), &out);
	assert_int_equal(s.found, found);
	stop_stream_end(&s, &out);
	assert_string_equal(text_str(&out), shown);
	stop_stream_release(&s);
	stop_texts_destroy(&texts);
	text_release(&out);
}

#define EXPECT(shown, found, pieces, ...)                                                                    \
	expect((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), \
	       (const char *const[]){pieces, NULL}, shown, found)
#define PIECES(...) __VA_ARGS__

static void test_stop_text__ends_the_text_before_it(void **state)
{
	(void)state;
	EXPECT("one ", 0, PIECES("one S", "TO", "P two"), "STOP");
	EXPECT("one STO", -1, PIECES("one S", "TO"), "STOP");
	EXPECT("ab", 0, PIECES("a", "b", "\n", "\nc"), "\n\n");
	EXPECT("", 0, PIECES("STOP"), "STOP");
	EXPECT("aa", 0, PIECES("aa", "aab"), "aab");    /* a beginning that fails is the beginning of another */
	EXPECT("abac", 0, PIECES("abacabab"), "abab");
	EXPECT("x", 1, PIECES("xabc"), "bc!", "abc", "c!");
	EXPECT("xa", 0, PIECES("xabcd"), "bc", "abcd"); /* the first that is complete */
	EXPECT("x", 1, PIECES("xabc"), "c", "abc", "bc"); /* of several, the longest */
	EXPECT("caf\xc3\xa3", -1, PIECES("caf", "\xc3\xa3"), "\xc3\xa9");
	EXPECT("caf", 0, PIECES("caf", "\xc3\xa9"), "\xc3\xa9");
	expect(NULL, 0, (const char *const[]){"any", " text", NULL}, "any text", -1);
}

static void test_stop_text__passes_on_what_is_certain(void **state)
{
	const char *const stops[] = {"<end>"};
	struct stop_texts *texts = texts_of(stops, 1);
	struct stop_stream s;
	struct text out = {0};

	(void)state;
	assert_int_equal(stop_stream_begin(&s, texts, NULL), STATUS_OK);
	stop_stream_add(&s, "a<", 2, &out);
	assert_string_equal(text_str(&out), "a");
	stop_stream_add(&s, "en", 2, &out);
	assert_string_equal(text_str(&out), "a");
	stop_stream_add(&s, "x", 1, &out);
	assert_string_equal(text_str(&out), "a<enx");
	stop_stream_add(&s, "<end>more", 9, &out);
	stop_stream_add(&s, "ignored", 7, &out);
	stop_stream_end(&s, &out);
	assert_string_equal(text_str(&out), "a<enx");
	assert_int_equal(s.found, 0);
	stop_stream_release(&s);
	stop_texts_destroy(&texts);
	text_release(&out);
}

static void test_stop_text__text_that_cannot_end_is_passed_on(void **state)
{
	const char *const stops[] = {"abab"};
	struct stop_texts *texts = texts_of(stops, 1);
	struct stop_stream s;
	struct text out = {0};

	(void)state;
	assert_int_equal(stop_stream_begin(&s, texts, NULL), STATUS_OK);
	stop_stream_pass(&s, "abab", 4, &out);
	assert_string_equal(text_str(&out), "ab");
	stop_stream_pass(&s, "ab", 2, &out);
	assert_string_equal(text_str(&out), "abab");
	assert_int_equal(s.found, -1);
	stop_stream_add(&s, "a", 1, &out);
	stop_stream_add(&s, "b", 1, &out);
	assert_string_equal(text_str(&out), "abab");
	assert_int_equal(s.found, 0);
	stop_stream_release(&s);
	stop_texts_destroy(&texts);
	text_release(&out);
}

/* The end of the stop string that is complete first behind `from`; of several the longest. */
static int search(const char *text, size_t from, const char *const *stops, size_t count, size_t *begin)
{
	int found = -1;

	for (size_t end = from + 1; end <= strlen(text) && found < 0; end++) {
		size_t longest = 0;

		for (size_t i = 0; i < count; i++) {
			size_t size = strlen(stops[i]);

			if (size <= end && size > longest && !memcmp(text + end - size, stops[i], size)) {
				longest = size;
				found = (int)i;
				*begin = end - size;
			}
		}
	}
	return found;
}

static void test_stop_text__any_texts_in_any_pieces(void **state)
{
	uint32_t seed = 7;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char stop[3][8] = {{0}}, text[40] = "";
		const char *stops[3] = {stop[0], stop[1], stop[2]};
		struct stop_texts *texts;
		struct stop_stream s;
		struct text out = {0};
		size_t size, begin = 0, count, from;
		int due;

#define NEXT(n) ((seed = seed * 1664525 + 1013904223) >> 16) % (n)
		count = 1 + NEXT(3);
		for (size_t i = 0; i < count; i++)
			for (size_t k = 0, most = 1 + NEXT(6); k < most; k++)
				stop[i][k] = (char)('a' + NEXT(2));
		size = NEXT(39);
		for (size_t k = 0; k < size; k++)
			text[k] = (char)('a' + NEXT(2));
		begin = size;
		from = round % 2 ? NEXT(size + 1) : 0;
		due = search(text, from, stops, count, &begin);
		texts = texts_of(stops, count);
		assert_int_equal(stop_stream_begin(&s, texts, NULL), STATUS_OK);
		for (size_t at = 0, part; at < size; at += part) {
			part = 1 + NEXT(4);
			part = part > size - at ? size - at : part;
			if (at < from) {
				part = part > from - at ? from - at : part;
				stop_stream_pass(&s, text + at, part, &out);
			} else {
				stop_stream_add(&s, text + at, part, &out);
			}
		}
#undef NEXT
		stop_stream_end(&s, &out);
		text[begin] = 0;
		assert_int_equal(s.found, due);
		assert_string_equal(text_str(&out), text);
		stop_stream_release(&s);
		stop_texts_destroy(&texts);
		text_release(&out);
	}
}

static void test_stop_text__refusals_name_the_string(void **state)
{
	static char large[STOP_TEXT_BYTES_MAX + 2];
	const char *many[STOP_TEXTS_MAX + 1];
	struct stop_texts *s = NULL;
	struct error err = {0};

	(void)state;
	assert_int_equal(stop_texts_create(&s, (const char *const[]){"a", ""}, 2, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "stop[1] is empty");
	memset(large, 'x', sizeof(large) - 1);
	err = (struct error){0};
	assert_int_equal(stop_texts_create(&s, (const char *const[]){large}, 1, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "stop[0] has 4097 bytes; at most 4096 are allowed");
	for (size_t i = 0; i <= STOP_TEXTS_MAX; i++)
		many[i] = "a";
	err = (struct error){0};
	assert_int_equal(stop_texts_create(&s, many, STOP_TEXTS_MAX + 1, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "stop has 65 strings; at most 64 are allowed");
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stop_text__ends_the_text_before_it),
		cmocka_unit_test(test_stop_text__passes_on_what_is_certain),
		cmocka_unit_test(test_stop_text__text_that_cannot_end_is_passed_on),
		cmocka_unit_test(test_stop_text__any_texts_in_any_pieces),
		cmocka_unit_test(test_stop_text__refusals_name_the_string),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
