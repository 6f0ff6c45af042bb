/* SPDX-License-Identifier: Apache-2.0 */
/* Held against the tables of transformers and PyTorch: tests/oracles/train_schedule.py. */
#include "test.h"

#include <math.h>
#include "core/file/file.h"
#include "train/step/schedule.h"

static const double peak = 2e-4;

static const struct opt_table *training_table(void)
{
	size_t i = 0;

	while (strcmp(config_sections[i].name, "training"))
		i++;
	return &config_sections[i].table;
}

/* "name=value .. steps=N: rate rate .." */
static void check_line(char *line)
{
	char *colon = strchr(line, ':'), *at = colon + 1, *save = NULL;
	struct config_training t;
	struct error err = {0};
	struct schedule s;
	uint64_t steps = 0;

	assert_non_null(colon);
	*colon = '\0';
	assert_int_equal(opt_defaults(training_table(), &t, &err), STATUS_OK);
	t.learning_rate = peak;
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(word, '=');

		*equals = '\0';
		if (!strcmp(word, "steps"))
			steps = strtoull(equals + 1, NULL, 10);
		else
			assert_int_equal(opt_set(training_table(), &t, word, equals + 1, "table", &err),
					 STATUS_OK);
	}
	assert_int_equal(schedule_of(&s, &t, steps, &err), STATUS_OK);
	for (uint64_t i = 0; i < steps; i++) {
		double theirs = strtod(at, &at), ours = schedule_rate(&s, i);

		if (!(fabs(ours - theirs) <= 1e-12 * peak + 1e-13 * theirs))
			fail_msg("type %d, step %llu of %llu: %.17g, not %.17g", (int)s.type, (unsigned long long)i,
				 (unsigned long long)steps, ours, theirs);
	}
	assert_int_equal(*at, '\0');
}

static void every_step_is_the_tables(void **state)
{
	struct error err = {0};
	char *text, *save = NULL;
	int lines = 0;

	(void)state;
	assert_int_equal(file_read(&text, NULL, SOURCE_DIR "/tests/data/train/schedules.txt", 1 << 20, &err),
			 STATUS_OK);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save), lines++)
		check_line(line);
	assert_int_equal(lines, 33);
	free(text);
}

static void shares_become_steps(void **state)
{
	struct config_training t = {.learning_rate = 1, .warmup_ratio = 0.03, .lr_scheduler_type = CONFIG_LINEAR};
	struct error err = {0};
	struct schedule s;

	(void)state;
	assert_int_equal(schedule_of(&s, &t, 101, &err), STATUS_OK);
	assert_int_equal(s.warmup, 4); /* rounded up */
	t.warmup_steps = 200;
	assert_int_equal(schedule_of(&s, &t, 101, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "200 warm-up steps"));
	error_clear(&err);
	t = (struct config_training){.lr_scheduler_type = CONFIG_WSD, .warmup_steps = 6, .num_decay_steps = 5};
	assert_int_equal(schedule_of(&s, &t, 10, &err), STATUS_BAD_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_step_is_the_tables),
		cmocka_unit_test(shares_become_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
