/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong in training, planted in whole runs of a tiny model: each is found by its name, with the
 * setting to turn, and a run in which nothing is wrong finds nothing. Time is the test's own: a step's work
 * is a second, a micro-batch comes at once or, where the reader is slow, half a second after it was asked
 * for.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include "scratch.h"
#include "test.h"

#include "core/clock.h"
#include "core/file/file.h"
#include "core/process/cpu_wait.h"
#include "model/files/model_folder.h"
#include "model/files/random_weights.h"
#include "text/files/tokenizer_files.h"
#include "train/run/diagnose.h"
#include "train/data/prefetch.h"
#include "train/run/run.h"
#include "train/step/stepper.h"

enum { SAME_ROWS = 60, SECOND = 1000000000, END_TOKEN = 258 };

struct plan { /* what is planted */
	bool slow_reader, odd_row, faint_end, huge_weights, nothing_said;
	bool saves; /* after each step: the thread that writes reads what the next step must not yet change */
	const char *rate, *config_hash;
	const char *saved; /* modules_to_save */
};

struct seen {
	char findings[FINDING_COUNT][512]; /* "word: text; knob" */
	size_t count;
};

static atomic_uint_fast64_t now;
static atomic_uint cpu_waits; /* reads of the time that a thread waited for a CPU */
static atomic_bool slow_reader;
static sem_t asked;

static uint64_t read_now(void *arg)
{
	(void)arg;
	return atomic_fetch_add(&now, 1000); /* nothing takes no time at all */
}

static void no_sleep(void *arg, uint64_t ns)
{
	(void)arg;
	atomic_fetch_add(&now, ns);
}

const struct clock *__wrap_clock_monotonic(void);
const struct clock *__wrap_clock_monotonic(void)
{
	static const struct clock own = {.now_ns = read_now, .sleep_ns = no_sleep};

	return &own;
}

uint64_t __wrap_cpu_wait_ns(pid_t tid);
uint64_t __wrap_cpu_wait_ns(pid_t tid)
{
	(void)tid;
	atomic_fetch_add(&cpu_waits, 1);
	return 0;
}

/* The reader's thread: it begins when a step does, so that nothing of its time is hidden behind the step
 * before. */
enum status __real_pack_batch_make(struct pack_batch *f, const struct tokenised *t, const struct sampler_epoch *e,
			      struct sampler_span span, uint64_t row_begin, struct error *err);
enum status __wrap_pack_batch_make(struct pack_batch *f, const struct tokenised *t, const struct sampler_epoch *e,
			      struct sampler_span span, uint64_t row_begin, struct error *err);
enum status __wrap_pack_batch_make(struct pack_batch *f, const struct tokenised *t, const struct sampler_epoch *e,
			      struct sampler_span span, uint64_t row_begin, struct error *err)
{
	if (atomic_load(&slow_reader)) {
		sem_wait(&asked);
		atomic_fetch_add(&now, SECOND / 2);
	}
	return __real_pack_batch_make(f, t, e, span, row_begin, err);
}

enum status __real_prefetch_step(struct prefetch *f, uint64_t step, struct prefetch_step *out, struct error *err);
enum status __wrap_prefetch_step(struct prefetch *f, uint64_t step, struct prefetch_step *out, struct error *err);
enum status __wrap_prefetch_step(struct prefetch *f, uint64_t step, struct prefetch_step *out, struct error *err)
{
	sem_post(&asked);
	return __real_prefetch_step(f, step, out, err);
}

void __real_prefetch_close(struct prefetch **f);
void __wrap_prefetch_close(struct prefetch **f);
void __wrap_prefetch_close(struct prefetch **f)
{
	atomic_store(&slow_reader, false);
	sem_post(&asked); /* one is made ahead of the last step */
	__real_prefetch_close(f);
}

enum status __real_stepper_micro(struct stepper *s, const struct batch *b, uint64_t step, uint64_t targets,
				 struct step_part *took, struct error *err);
enum status __wrap_stepper_micro(struct stepper *s, const struct batch *b, uint64_t step, uint64_t targets,
				 struct step_part *took, struct error *err);
enum status __wrap_stepper_micro(struct stepper *s, const struct batch *b, uint64_t step, uint64_t targets,
				 struct step_part *took, struct error *err)
{
	atomic_fetch_add(&now, SECOND);
	return __real_stepper_micro(s, b, step, targets, took, err);
}

/* A model in which what is planted stands in the weights. */
static enum status weights_of(void *arg, const struct named *n, int64_t row, int64_t rows, float *out,
			      struct error *err)
{
	const struct plan *plan = arg;

	(void)err;
	random_weights(n, 1, row, rows, out);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < n->cols; i++) {
			float *x = &out[r * n->cols + i];

			if (plan->faint_end && !strcmp(n->hf, "lm_head.weight") && row + r == END_TOKEN)
				*x *= 0.1f;
			if (plan->huge_weights && strstr(n->hf, "v_proj.weight"))
				*x = *x > 0 ? 3e38f : -3e38f;
		}
	return STATUS_OK;
}

static enum status tokenizer_of(void *arg, const char *dir, struct error *err)
{
	(void)arg;
	return tokenizer_files_of_bytes(dir, err);
}

static void write_model(const char *dir, const struct plan *plan)
{
	struct shape shape;
	struct folder_options o = {.shape = &shape,
				   .dtype = DTYPE_F32,
				   .shard_bytes = 1u << 30,
				   .rows = weights_of,
				   .more = tokenizer_of,
				   .arg = (void *)(uintptr_t)plan};
	struct error err = {0};

	assert_int_equal(shape_by_name(&shape, "tiny", &err), STATUS_OK);
	if (folder_write(dir, &o, &err))
		fail_msg("%s", err.text);
}

/* One row many times, and where it is planted another one behind them. */
static void write_rows(const char *path, const struct plan *plan)
{
	const char *turn = plan->nothing_said ? "user" : "assistant";
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (int i = 0; i < SAME_ROWS; i++)
		fprintf(f,
			"{\"messages\":[{\"role\":\"user\",\"content\":\"where?\"},"
			"{\"role\":\"%s\",\"content\":\"here\"}]}\n",
			turn);
	if (plan->odd_row)
		fprintf(f, "{\"messages\":[{\"role\":\"user\",\"content\":\"WHO\"},"
			   "{\"role\":\"assistant\",\"content\":\"##@@!!$$%%%%^^\"}]}\n");
	fclose(f);
}

static void write_config(const char *dir, const struct plan *plan)
{
	bool full = plan->odd_row || plan->rate == NULL;
	char path[PATH_MAX], text[2048], lora[128];
	struct error err = {0};

	snprintf(lora, sizeof(lora),
		 "lora: {r: 2, target_modules: [q_proj, v_proj], modules_to_save: [%s]}\n",
		 plan->saved ? plan->saved : "");
	snprintf(path, sizeof(path), "%.4000s/config.yaml", dir);
	snprintf(
		text, sizeof(text),
		"model: {path: %.600s/base, chat_template: chatml}\n%s"
		"data: {train: %.600s/rows.jsonl, max_seq_length: 96, shuffle: false, packing: false}\n"
		"training: {per_device_train_batch_size: 1, learning_rate: %s, lr_scheduler_type: constant, "
		"max_grad_norm: 0, max_steps: %d, save_steps: %d, tensorboard: false, full_finetuning: %s}\n",
		dir, full ? "" : lora, dir, plan->rate ? plan->rate : "1e-2",
		plan->odd_row ? SAME_ROWS + 1 : 12, plan->saves ? 1 : SAME_ROWS + 1, full ? "true" : "false");
	assert_int_equal(file_write(path, text, strlen(text), &err), STATUS_OK);
}

static enum status keep_finding(void *arg, const char *type, json_t *body, struct error *err)
{
	struct seen *seen = arg;

	(void)err;
	if (!strcmp(type, "finding")) {
		assert_true(seen->count < FINDING_COUNT);
		snprintf(seen->findings[seen->count++], sizeof(seen->findings[0]), "%s: %s; %s",
			 json_string_value(json_object_get(body, "finding")),
			 json_string_value(json_object_get(body, "text")),
			 json_string_value(json_object_get(body, "knob")));
	}
	json_decref(body);
	return STATUS_OK;
}

static void no_line(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	(void)arg, (void)level, (void)topic, (void)line;
}

/* Runs it as the worker does. */
static enum status train(const char *scratch, const struct plan *plan, struct seen *seen, struct error *err)
{
	static const volatile sig_atomic_t stop = 0;
	const struct log log = {.sink = no_line};
	const struct train_job job = {.dir = scratch,
				      .config_hash = plan->config_hash,
				      .stop = &stop,
				      .log = &log,
				      .emit = keep_finding,
				      .arg = seen};
	char path[PATH_MAX];
	json_t *values = NULL;
	enum status st;

	*seen = (struct seen){0};
	snprintf(path, sizeof(path), "%.4000s/base", scratch);
	write_model(path, plan);
	snprintf(path, sizeof(path), "%.4000s/rows.jsonl", scratch);
	write_rows(path, plan);
	write_config(scratch, plan);
	sem_init(&asked, 0, 0);
	atomic_store(&slow_reader, plan->slow_reader);
	st = train_run(&job, &values, err);
	json_decref(values);
	sem_destroy(&asked);
	return st;
}

static bool found(const struct seen *seen, const char *word, const char *knob)
{
	for (size_t i = 0; i < seen->count; i++) {
		size_t n = strlen(word);

		if (!strncmp(seen->findings[i], word, n) && seen->findings[i][n] == ':' &&
		    strstr(seen->findings[i], knob))
			return true;
	}
	return false;
}

static void nothing_planted_finds_nothing(void **state)
{
	struct error err = {0};
	struct seen seen;

	if (train(*state, &(struct plan){.saves = true}, &seen, &err))
		fail_msg("%s", err.text);
	if (seen.count)
		fail_msg("%s", seen.findings[0]);
	assert_int_equal(atomic_load(&cpu_waits), 0); /* only several ranks need them */
}

static void a_slow_reader_is_data_bound(void **state)
{
	struct error err = {0};
	struct seen seen;

	assert_int_equal(train(*state, &(struct plan){.slow_reader = true}, &seen, &err), STATUS_OK);
	assert_int_equal(seen.count, 1);
	assert_true(found(&seen, "data_bound", "data: cache_dir"));
}

/* A row that is like no other, after the others are learned. */
static void an_odd_row_is_a_spike_and_explodes(void **state)
{
	struct error err = {0};
	struct seen seen;

	assert_int_equal(train(*state, &(struct plan){.odd_row = true, .rate = "3e-3"}, &seen, &err),
			 STATUS_OK);
	assert_int_equal(seen.count, 2);
	assert_true(found(&seen, "loss_spike", "look at the rows of these steps"));
	assert_true(found(&seen, "exploding_gradient", "max_grad_norm: 1"));
	for (size_t i = 0; i < seen.count; i++)
		if (!strstr(seen.findings[i], "step 61"))
			fail_msg("%s", seen.findings[i]);
}

static void weights_that_overflow_end_the_run(void **state)
{
	struct error err = {0};
	struct seen seen;

	assert_int_equal(train(*state, &(struct plan){.huge_weights = true}, &seen, &err), STATUS_MISMATCH);
	assert_int_equal(err.cause, CAUSE_NAN);
	assert_true(found(&seen, "not_finite", "a lower learning_rate"));
	assert_non_null(strstr(err.text, "change this setting: training: a lower learning_rate"));
}

static void an_end_of_turn_that_was_never_trained_is_told_before_the_first_step(void **state)
{
	struct error err = {0};
	struct seen seen;

	assert_int_equal(train(*state, &(struct plan){.faint_end = true, .rate = "1e-2"}, &seen, &err),
			 STATUS_OK);
	assert_int_equal(seen.count, 1);
	assert_true(found(&seen, "end_untrained", "modules_to_save: [embed_tokens, lm_head]"));
	assert_non_null(strstr(seen.findings[0], "<|im_end|>"));
}

static void a_trained_embedding_teaches_no_end_of_turn(void **state)
{
	const struct plan plan = {.faint_end = true, .rate = "1e-2", .saved = "embed_tokens"};
	struct error err = {0};
	struct seen seen;

	assert_int_equal(train(*state, &plan, &seen, &err), STATUS_OK);
	assert_true(found(&seen, "end_untrained", "modules_to_save: [embed_tokens, lm_head]"));
}

static void a_trained_head_learns_the_end_of_turn(void **state)
{
	const struct plan plan = {.faint_end = true, .rate = "1e-2", .saved = "embed_tokens, lm_head"};
	struct error err = {0};
	struct seen seen;

	assert_int_equal(train(*state, &plan, &seen, &err), STATUS_OK);
	assert_false(found(&seen, "end_untrained", ""));
}

static void a_rate_of_zero_ends_the_run_before_it_begins(void **state)
{
	struct error err = {0};
	struct seen seen;

	assert_int_equal(train(*state, &(struct plan){.rate = "0"}, &seen, &err), STATUS_BAD_INPUT);
	assert_true(found(&seen, "learning_rate_zero", "training: learning_rate"));
}

static void rows_in_which_no_assistant_speaks_are_refused(void **state)
{
	struct error err = {0};
	struct seen seen;

	assert_int_equal(train(*state, &(struct plan){.nothing_said = true}, &seen, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "60 "));
	assert_non_null(strstr(err.text, "model: chat_template"));
}

static void a_configuration_that_was_replaced_is_not_trained_with(void **state)
{
	struct error err = {0};
	struct seen seen;

	assert_int_equal(train(*state, &(struct plan){.config_hash = "another run's"}, &seen, &err),
			 STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "/config.yaml: another run in the same folder replaced it"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(nothing_planted_finds_nothing),
		scratch_test(a_slow_reader_is_data_bound),
		scratch_test(an_odd_row_is_a_spike_and_explodes),
		scratch_test(weights_that_overflow_end_the_run),
		scratch_test(an_end_of_turn_that_was_never_trained_is_told_before_the_first_step),
		scratch_test(a_trained_embedding_teaches_no_end_of_turn),
		scratch_test(a_trained_head_learns_the_end_of_turn),
		scratch_test(a_rate_of_zero_ends_the_run_before_it_begins),
		scratch_test(rows_in_which_no_assistant_speaks_are_refused),
		scratch_test(a_configuration_that_was_replaced_is_not_trained_with),
	};

	return cmocka_run_group_tests_name("train_findings", tests, NULL, NULL);
}
