/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/file/file.h"
#include "train/checkpoint/checkpoint.h"

enum { A = 3 * 5, B = 4 * 2, C = 7, LENGTH = A + B + C };

struct bed {
	char run[64];
	struct params p;
	float memory[3][LENGTH];
	json_t *state;
};

static void add(struct params *p, const char *name, int64_t rows, int64_t cols)
{
	struct param *one = &p->table[p->count++];

	*one = (struct param){.rows = rows, .cols = cols, .offset = p->length};
	snprintf(one->name, sizeof(one->name), "%s", name);
	p->length += (size_t)(rows * cols);
}

static void point(struct params *p, float memory[3][LENGTH])
{
	p->master = p->m = p->v = (struct mat){.rows = 1, .cols = LENGTH, .ld = LENGTH, .dtype = DTYPE_F32};
	p->master.data = memory[0];
	p->m.data = memory[1];
	p->v.data = memory[2];
}

static void fill(struct bed *b, uint64_t step)
{
	for (int part = 0; part < 3; part++)
		for (int i = 0; i < LENGTH; i++)
			b->memory[part][i] = (float)(1000 * step + 100 * (unsigned)part + (unsigned)i);
}

static int begin(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	snprintf(b->run, sizeof(b->run), "/tmp/train_checkpoint.XXXXXX");
	assert_non_null(mkdtemp(b->run));
	b->p.table = calloc(3, sizeof(*b->p.table));
	add(&b->p, "a", 3, 5);
	add(&b->p, "b", 4, 2);
	add(&b->p, "c", 1, 7);
	point(&b->p, b->memory);
	b->state = json_pack("{s:i}", "global_step", 1);
	*state = b;
	return 0;
}

static int end(void **state)
{
	struct bed *b = *state;

	file_remove_tree(b->run);
	json_decref(b->state);
	free(b->p.table);
	free(b);
	return 0;
}

static struct checkpoint_source source(struct bed *b, uint64_t step)
{
	fill(b, step);
	return (struct checkpoint_source){.run = b->run, .step = step, .params = &b->p, .state = b->state};
}

static void save(struct bed *b, uint64_t step)
{
	struct checkpoint_source c = source(b, step);
	struct error err = {0};

	if (checkpoint_write(&c, &err))
		fail_msg("%s", err.text);
}

static bool is_there(const struct bed *b, const char *name)
{
	char path[300];
	struct stat about;

	snprintf(path, sizeof(path), "%s/%s", b->run, name);
	return !stat(path, &about);
}

/* What a checkpoint of that step holds, in whichever order the parameters stand. */
static void hold_against(const struct params *p, float memory[3][LENGTH], const struct bed *like,
			 uint64_t step)
{
	for (int i = 0; i < p->count; i++) {
		const struct param *one = &p->table[i], *there = NULL;

		for (int k = 0; k < like->p.count; k++)
			if (!strcmp(like->p.table[k].name, one->name))
				there = &like->p.table[k];
		for (int part = 0; part < 3; part++)
			for (int64_t e = 0; e < one->rows * one->cols; e++)
				assert_true(memory[part][one->offset + (size_t)e] ==
					    (float)(1000 * step + 100 * (unsigned)part + there->offset +
						    (size_t)e));
	}
}

static void parameters_come_back_by_name(void **state)
{
	struct bed *b = *state;
	struct param table[3];
	struct params other = {.table = table};
	float memory[3][LENGTH] = {{0}};
	struct checkpoint_found f;
	struct text note = {0};
	struct error err = {0};
	json_t *read = NULL;

	save(b, 7);
	add(&other, "c", 1, 7); /* another order */
	add(&other, "a", 3, 5);
	add(&other, "b", 4, 2);
	point(&other, memory);
	assert_int_equal(checkpoint_find(&f, b->run, &note, &err), STATUS_OK);
	assert_int_equal(f.step, 7);
	assert_int_equal(note.size, 0);
	assert_int_equal(checkpoint_load(&f, &other, &err), STATUS_OK);
	hold_against(&other, memory, b, 7);
	assert_int_equal(checkpoint_state(&f, &read, &err), STATUS_OK);
	assert_true(json_equal(read, b->state));
	json_decref(read);
	checkpoint_found_release(&f);
	assert_true(is_there(b, "latest"));
}

static void another_models_are_refused(void **state)
{
	struct bed *b = *state;
	struct checkpoint_found f;
	struct text note = {0};
	struct error err = {0};

	save(b, 1);
	assert_int_equal(checkpoint_find(&f, b->run, &note, &err), STATUS_OK);
	b->p.table[1].rows = 2;
	assert_int_equal(checkpoint_load(&f, &b->p, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "parameter b has another size"));
	error_clear(&err);
	snprintf(b->p.table[1].name, sizeof(b->p.table[1].name), "x");
	assert_int_equal(checkpoint_load(&f, &b->p, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "no parameter x"));
	error_clear(&err);
	b->p.count = 2;
	assert_int_equal(checkpoint_load(&f, &b->p, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "3 parameters"));
	checkpoint_found_release(&f);
}

static void older_ones_go_and_the_best_stays(void **state)
{
	struct bed *b = *state;

	for (uint64_t step = 10; step <= 50; step += 10)
		save(b, step);
	checkpoint_thin(b->run, 2, 20);
	assert_true(is_there(b, "checkpoint-50"));
	assert_true(is_there(b, "checkpoint-40"));
	assert_false(is_there(b, "checkpoint-30"));
	assert_true(is_there(b, "checkpoint-20"));
	assert_false(is_there(b, "checkpoint-10"));
	checkpoint_thin(b->run, 0, 0);
	assert_true(is_there(b, "checkpoint-20"));
}

static void spoil(const struct bed *b, const char *file)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", b->run, file);
	f = fopen(path, "r+");
	assert_non_null(f);
	fputc('!', f);
	fclose(f);
}

static void what_is_damaged_is_put_aside(void **state)
{
	struct bed *b = *state;
	struct checkpoint_found f;
	struct text note = {0};
	struct error err = {0};
	char half[300];

	save(b, 1);
	save(b, 2);
	save(b, 3);
	spoil(b, "checkpoint-3/optimizer.bin");
	spoil(b, "checkpoint-2/checkpoint.json");
	for (int step = 0; step <= 4; step += 4) { /* older and newer than the one that is found */
		snprintf(half, sizeof(half), "%s/checkpoint-%d.new", b->run, step);
		assert_int_equal(mkdir(half, 0777), 0);
	}
	assert_int_equal(checkpoint_find(&f, b->run, &note, &err), STATUS_OK);
	assert_int_equal(f.step, 1);
	assert_non_null(strstr(text_str(&note), "checkpoint-3/optimizer.bin: its SHA-256"));
	assert_non_null(strstr(text_str(&note), "checkpoint-2.damaged"));
	assert_true(is_there(b, "checkpoint-3.damaged"));
	assert_false(is_there(b, "checkpoint-4.new"));
	assert_false(is_there(b, "checkpoint-0.new"));
	checkpoint_found_release(&f);
	text_release(&note);
	spoil(b, "checkpoint-1/trainer_state.json");
	assert_int_equal(checkpoint_find(&f, b->run, &note, &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "no intact checkpoint"));
	text_release(&note);
}

/* A file that may not grow is what a full disk is to the writer. */
static void a_full_disk_leaves_the_old_one(void **state)
{
	struct bed *b = *state;
	struct rlimit old, tight;
	struct error err = {0};
	struct checkpoint_source c;
	struct checkpoint_found f;
	struct text note = {0};
	enum status st;

	save(b, 1);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight = old;
	tight.rlim_cur = 100;
	c = source(b, 2);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	st = checkpoint_write(&c, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(st, STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_DISK_FULL);
	assert_false(is_there(b, "checkpoint-2"));
	assert_false(is_there(b, "checkpoint-2.new"));
	error_clear(&err);
	assert_int_equal(checkpoint_find(&f, b->run, &note, &err), STATUS_OK);
	assert_int_equal(f.step, 1);
	checkpoint_found_release(&f);
}

static enum status refuse(void *arg, const char *dir, const struct params *params, struct error *err)
{
	(void)dir, (void)params;
	return error_set(err, STATUS_BAD_INPUT, "%s", (const char *)arg);
}

/* Checkpoint 1 gives back what fill(b, number) made. */
static void first_holds(struct bed *b, int number)
{
	struct checkpoint_found f;
	struct error err = {0};
	struct text note = {0};

	fill(b, 99);
	assert_int_equal(checkpoint_open(&f, b->run, 1, &note, &err), STATUS_OK);
	assert_int_equal(checkpoint_load(&f, &b->p, &err), STATUS_OK);
	hold_against(&b->p, b->memory, b, number);
	checkpoint_found_release(&f);
}

/* Told when it is there, and not before. */
static enum status told(void *arg, const char *run, uint64_t step, struct error *err)
{
	const struct bed *b = arg;
	char path[PATH_MAX + 64];

	if (strcmp(run, b->run))
		return error_set(err, STATUS_BUG, "step %" PRIu64 " was written in %s and told in %s", step, b->run, run);
	snprintf(path, sizeof(path), "%s/checkpoint-%" PRIu64 "/checkpoint.json", run, step);
	return access(path, F_OK) ? error_set(err, STATUS_BUG, "%s was told and is not there", path)
				  : STATUS_OK;
}

/* The thread's error is told by the next call; after the wait parameters may change. */
static void a_thread_writes_what_is_there_until_the_wait(void **state)
{
	struct bed *b = *state;
	struct checkpoint_source c = source(b, 1);
	struct checkpoint_writer *w;
	struct error err = {0};
	static char why[] = "not today";
	char now[64];

	snprintf(now, sizeof(now), "%s", b->run);
	c.run = now;
	c.written = told;
	c.arg = b;
	assert_int_equal(checkpoint_writer_create(&w, 1, &err), STATUS_OK);
	assert_int_equal(checkpoint_writer_begin(w, &c, 0, &err), STATUS_OK);
	/* The run directory is moved: what is under way is still told where it is written. */
	snprintf(now, sizeof(now), "/nowhere");
	c = (struct checkpoint_source){.run = b->run, .step = 2, .params = &b->p, .state = b->state};
	if (checkpoint_writer_wait(w, &err))
		fail_msg("%s", err.text);
	first_holds(b, 1);

	c.more = refuse;
	c.arg = why;
	assert_int_equal(checkpoint_writer_begin(w, &c, 0, &err), STATUS_OK);
	assert_int_equal(checkpoint_writer_wait(w, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, why);
	assert_true(is_there(b, "checkpoint-1"));
	assert_false(is_there(b, "checkpoint-2"));
	checkpoint_writer_free(w);
	checkpoint_writer_free(NULL);
}

static enum status take_three(void *arg, struct error *err)
{
	struct bed *b = arg;

	(void)err;
	usleep(50000); /* who goes on before is seen */
	fill(b, 3);
	return STATUS_OK;
}

static enum status take_nothing(void *arg, struct error *err)
{
	(void)arg;
	return error_set(err, STATUS_LOST, "the device is gone");
}

/* What the thread brings itself is there when it is said to be taken; where it cannot be had, nothing is written. */
static void a_thread_takes_what_it_writes(void **state)
{
	struct bed *b = *state;
	struct checkpoint_source c = source(b, 1);
	struct checkpoint_writer *w;
	struct error err = {0};

	c.take = take_three;
	c.arg = b;
	fill(b, 1);
	assert_int_equal(checkpoint_writer_create(&w, 1, &err), STATUS_OK);
	checkpoint_writer_taken(w); /* there is none */
	assert_int_equal(checkpoint_writer_begin(w, &c, 0, &err), STATUS_OK);
	checkpoint_writer_taken(w);
	hold_against(&b->p, b->memory, b, 3);
	assert_int_equal(checkpoint_writer_wait(w, &err), STATUS_OK);
	first_holds(b, 3);

	c.step = 2;
	c.take = take_nothing;
	assert_int_equal(checkpoint_writer_begin(w, &c, 0, &err), STATUS_OK);
	checkpoint_writer_taken(w); /* it failed, and that is said by the wait */
	assert_int_equal(checkpoint_writer_wait(w, &err), STATUS_LOST);
	assert_false(is_there(b, "checkpoint-2"));
	checkpoint_writer_free(w);
}

static void killed_at_any_moment_the_last_one_loads(void **state)
{
	struct bed *b = *state;
	unsigned seed = 1;
	uint64_t last = 1;

	save(b, 1);
	for (int trial = 0; trial < 50; trial++) {
		float memory[3][LENGTH];
		struct params p = b->p;
		struct checkpoint_found f;
		struct text note = {0};
		struct error err = {0};
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			for (uint64_t step = last + (unsigned)trial % 2;; step++) { /* or writes it again */
				save(b, step);
				checkpoint_thin(b->run, 2, 0);
			}
		clock_sleep_ns(clock_monotonic(), (uint64_t)(rand_r(&seed) % 60000) * 1000);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		if (checkpoint_find(&f, b->run, &note, &err))
			fail_msg("trial %d: %s", trial, err.text);
		point(&p, memory);
		assert_int_equal(note.size, 0); /* none is damaged: each is there whole or not at all */
		assert_int_equal(checkpoint_load(&f, &p, &err), STATUS_OK);
		hold_against(&p, memory, b, f.step);
		assert_true(f.step >= last);
		last = f.step;
		checkpoint_found_release(&f);
	}
	assert_true(last > 1); /* they did write */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(parameters_come_back_by_name, begin, end),
		cmocka_unit_test_setup_teardown(another_models_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(older_ones_go_and_the_best_stays, begin, end),
		cmocka_unit_test_setup_teardown(what_is_damaged_is_put_aside, begin, end),
		cmocka_unit_test_setup_teardown(a_full_disk_leaves_the_old_one, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_writes_what_is_there_until_the_wait, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_takes_what_it_writes, begin, end),
		cmocka_unit_test_setup_teardown(killed_at_any_moment_the_last_one_loads, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
