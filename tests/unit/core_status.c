/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "core/error.h"
#include "core/log.h"
#include "core/status.h"

static void test_status__every_name_comes_back(void **state)
{
	enum status status, status_back;
	enum ending ending, ending_back;
	enum verdict verdict, verdict_back;
	enum cause cause, cause_back;

	(void)state;
	for (status = 0; status < STATUS_COUNT; status++)
		assert_true(status_from_name(status_name(status), &status_back) && status_back == status);
	for (ending = 0; ending < ENDING_COUNT; ending++)
		assert_true(ending_from_name(ending_name(ending), &ending_back) && ending_back == ending);
	for (verdict = 0; verdict < VERDICT_COUNT; verdict++)
		assert_true(verdict_from_name(verdict_name(verdict), &verdict_back) &&
			    verdict_back == verdict);
	for (cause = 0; cause < CAUSE_COUNT; cause++)
		assert_true(cause_from_name(cause_name(cause), &cause_back) && cause_back == cause);
}

static void test_status__a_stranger_is_not_in_the_list(void **state)
{
	enum verdict verdict = VERDICT_WARN;
	enum status status = STATUS_LOST;
	enum ending ending = ENDING_CUT;
	enum cause cause = CAUSE_ECC;

	(void)state;
	assert_false(verdict_from_name("passed", &verdict));
	assert_false(verdict_from_name(NULL, &verdict));
	assert_int_equal(verdict, VERDICT_WARN);
	assert_false(status_from_name("OK", &status));
	assert_false(ending_from_name("", &ending));
	assert_false(cause_from_name("driver missing", &cause));
	assert_string_equal(verdict_name((enum verdict)99), "?");
	assert_int_equal(verdict_exit_code((enum verdict)99), 2);
}

static void test_status__every_row_says_what_it_means(void **state)
{
	enum cause cause;

	(void)state;
	for (cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
		assert_true(cause_text(cause)[0]);
	assert_string_equal(cause_action(CAUSE_POWER_BRAKE), "check power supplies and the brake signal");
	assert_string_equal(status_text(STATUS_LOST), "the device went away");
	assert_string_equal(ending_text(ENDING_DONE), "the worker reported its end");
	assert_string_equal(verdict_text(VERDICT_ERROR), "the case ended without a result; see the reason");
}

static void test_status__only_fail_asks_for_one(void **state)
{
	(void)state;
	assert_int_equal(verdict_exit_code(VERDICT_PASS), 0);
	assert_int_equal(verdict_exit_code(VERDICT_MEASURED), 0);
	assert_int_equal(verdict_exit_code(VERDICT_WARN), 0);
	assert_int_equal(verdict_exit_code(VERDICT_FAIL), 1);
	assert_int_equal(verdict_exit_code(VERDICT_UNKNOWN), 2);
	assert_int_equal(verdict_exit_code(VERDICT_SKIP), 0);
	assert_int_equal(verdict_exit_code(VERDICT_UNTRUSTED), 2);
	assert_int_equal(verdict_exit_code(VERDICT_ERROR), 2);
}

static void test_status__the_weightiest_verdict_counts(void **state)
{
	static const enum verdict order[] = {VERDICT_SKIP,    VERDICT_MEASURED,	 VERDICT_PASS,	VERDICT_WARN,
					     VERDICT_UNKNOWN, VERDICT_UNTRUSTED, VERDICT_ERROR, VERDICT_FAIL};
	const int count = sizeof(order) / sizeof(order[0]);

	(void)state;
	assert_int_equal(count, VERDICT_COUNT);
	for (int i = 0; i < count; i++)
		assert_int_equal(verdict_weight(order[i]), i);
	assert_int_equal(VERDICT_WEIGHT_MOST, count - 1);
	assert_int_equal(verdict_weight((enum verdict)99), VERDICT_WEIGHT_MOST);
}

static void test_error__the_first_wins(void **state)
{
	struct error err = {0};

	(void)state;
	assert_int_equal(error_set(&err, STATUS_VENDOR, "call %d failed", 3), STATUS_VENDOR);
	assert_int_equal(error_set(&err, STATUS_LOST, "later"), STATUS_LOST);
	assert_int_equal(err.status, STATUS_VENDOR);
	assert_string_equal(err.text, "call 3 failed");
	assert_int_equal(error_set(NULL, STATUS_BUG, "nobody asks"), STATUS_BUG);
	error_clear(&err);
	assert_int_equal(err.status, STATUS_OK);
	assert_string_equal(err.text, "");
}

static void test_error__errno_gives_status_and_cause(void **state)
{
	static const struct {
		int errnum;
		enum status status;
		enum cause cause;
	} rows[] = {
		{ENOSPC, STATUS_NO_RESOURCE, CAUSE_DISK_FULL}, {ENOMEM, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY},
		{EMFILE, STATUS_NO_RESOURCE, CAUSE_LIMIT_LOW}, {EACCES, STATUS_UNAVAILABLE, CAUSE_PERMISSION},
		{EPERM, STATUS_UNAVAILABLE, CAUSE_PERMISSION}, {ENOENT, STATUS_UNAVAILABLE, CAUSE_NONE},
		{EISDIR, STATUS_BAD_INPUT, CAUSE_NONE},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};

		assert_int_equal(error_errno(&err, rows[i].errnum, "cannot open %s", "x"), rows[i].status);
		assert_int_equal(err.cause, rows[i].cause);
	}
}

static void test_error__a_long_text_is_cut_not_overrun(void **state)
{
	struct error err = {0};
	char name[2000];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	error_errno(&err, ENOENT, "cannot open %s", name);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

struct seen {
	int lines;
	enum log_level level;
	char text[64];
};

static void sink(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	struct seen *seen = arg;

	(void)topic;
	seen->lines++;
	seen->level = level;
	snprintf(seen->text, sizeof(seen->text), "%s", line);
}

static void test_log__only_wanted_topics_reach_the_sink(void **state)
{
	struct seen seen = {0};
	struct log log = {.sink = sink, .arg = &seen, .topics = 1u << LOG_TOPIC_TIMING};
	const struct log *wanted = &log;
	enum log_topic topic;

	(void)state;
	log_debug(wanted, LOG_TOPIC_RUN, "not %s", "wanted");
	assert_int_equal(seen.lines, 0);
	log_debug(wanted, LOG_TOPIC_TIMING, "phase %s", "burst");
	assert_string_equal(seen.text, "phase burst");
	log.quiet = true;
	log_info(&log, LOG_TOPIC_RUN, "hidden");
	log_warn(&log, LOG_TOPIC_RUN, "shown");
	assert_int_equal(seen.lines, 2);
	assert_int_equal(seen.level, LOG_WARN);
	log_error(NULL, LOG_TOPIC_RUN, "no log at all");
	assert_true(log_topic_from_name("judge", &topic) && topic == LOG_TOPIC_JUDGE);
	assert_false(log_topic_from_name("judges", &topic));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status__every_name_comes_back),
		cmocka_unit_test(test_status__a_stranger_is_not_in_the_list),
		cmocka_unit_test(test_status__every_row_says_what_it_means),
		cmocka_unit_test(test_status__only_fail_asks_for_one),
		cmocka_unit_test(test_status__the_weightiest_verdict_counts),
		cmocka_unit_test(test_error__the_first_wins),
		cmocka_unit_test(test_error__errno_gives_status_and_cause),
		cmocka_unit_test(test_error__a_long_text_is_cut_not_overrun),
		cmocka_unit_test(test_log__only_wanted_topics_reach_the_sink),
	};

	return cmocka_run_group_tests_name("core_status", tests, NULL, NULL);
}
