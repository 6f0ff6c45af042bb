/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of docs/reference/training-combinations.md: each cell runs, or is refused with the words of the
 * cell's note. With offload it has the bits of the same run without, and else those of `recompute: none`.
 */
#include "offload_bed.h"
#include "core/file/file.h"

enum { COLUMNS = 8 };
static const char *const recomputes[] = {"none", "cheap", "full", "offload"};

/* Cells of a row of the table, without spaces around. */
static int cells_of(char *line, char *cell[16])
{
	char *rest;
	int count = 0;

	for (char *at = strtok_r(line, "|\n", &rest); at && count < 16; at = strtok_r(NULL, "|\n", &rest)) {
		char *end = at + strlen(at);

		while (end > at && end[-1] == ' ')
			*--end = 0;
		while (*at == ' ')
			at++;
		if (*at)
			cell[count++] = at;
	}
	return count;
}

static const char *precision_of(const char *word)
{
	static const struct {
		const char *word, *settings;
	} all[] = {{"fp32", ", precision: fp32"},
		   {"tf32", ", precision: tf32"},
		   {"bf16", ", precision: bf16"},
		   {"fp8", ", precision: fp8"},
		   {"nf4", ""},
		   {"nf4, fp8", ", precision: fp8"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].word, word))
			return all[i].settings;
	fail_msg("the table has precision %s", word);
	return NULL;
}

static void check_runs(const struct variant *v, bool moves, const char *what)
{
	struct work plain, other;
	struct error err = {0};
	struct result a, b;

	must(open_run(&plain, v, false, &err), &err);
	if (open_run(&other, v, true, &err))
		fail_msg("%s: %s", what, err.text);
	load(&plain);
	load(&other);
	must(train_step(&plain, 0, &a, &err), &err);
	must(train_step(&other, 0, &b, &err), &err);
	assert_true(isfinite(b.loss) && b.norm > 0);
	if (a.loss != b.loss || a.norm != b.norm || a.held != b.held || !same_states(&plain, &other))
		fail_msg("%s: other bits", what);
	assert_true((other.s.host.size > 0) == moves);
	close_work(&plain);
	close_work(&other);
}

static void check_refused(const struct variant *v, const char *page, const char *note, const char *what)
{
	struct error err = {0};
	struct work w;
	char mark[16], words[128] = "";
	const char *at;

	snprintf(mark, sizeof(mark), "\n- %s: \"", note);
	at = strstr(page, mark);
	if (!at || sscanf(at + strlen(mark), "%127[^\"]", words) != 1)
		fail_msg("%s: no note %s", what, note);
	assert_int_equal(open_run(&w, v, true, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, words))
		fail_msg("%s: refused with: %s", what, err.text);
}

/* device, precision, what is trained, then recompute x (none, optimizer). */
static int check_row(char *line, const char *page)
{
	char *cell[16], training[160], offload[100], what[160];
	const int count = cells_of(line, cell);
	const bool gpu = !strcmp(cell[0], "gpu"), full = !strcmp(cell[2], "full");
	const bool separate = !strcmp(cell[2], "LoRA, separate");

	assert_int_equal(count, 3 + COLUMNS);
	for (int i = 0; i < COLUMNS; i++) {
		const bool optimizer = i >= COLUMNS / 2, inputs = i % 4 == 3;
		const struct variant v = {.gpu = gpu,
					  .family = FAMILY_LLAMA,
					  .layers = 4,
					  .what = full ? "" : "lora: {r: 8, alpha: 6}",
					  .model = !strncmp(cell[1], "nf4", 3) ? ", load_in_4bit: true" : "",
					  .training = training,
					  .plain = inputs ? ", recompute: full" : offload,
					  .offload = offload};

		assert_true(full || separate || !strcmp(cell[2], "LoRA"));
		snprintf(training, sizeof(training), "%s%s", precision_of(cell[1]),
			 full	    ? ", full_finetuning: true"
			 : separate ? ", adapters: separate"
				    : "");
		snprintf(offload, sizeof(offload), ", recompute: %s%s", recomputes[i % 4],
			 optimizer ? ", offload: optimizer, bucket_cap_mb: 0.01" : "");
		snprintf(what, sizeof(what), "%s %s %s%s", cell[0], cell[1], cell[2], offload);
		if (!strcmp(cell[3 + i], "yes")) {
			char plain[100];
			struct variant run = v;

			snprintf(plain, sizeof(plain), ", recompute: %s",
				 inputs	     ? "full"
				 : optimizer ? recomputes[i % 4]
					     : "none");
			run.plain = plain;
			check_runs(&run, inputs || optimizer, what);
		} else {
			check_refused(&v, page, cell[3 + i], what);
		}
	}
	return COLUMNS;
}

static void check_rows(const char *device, int rows)
{
	char *page = NULL, *text, *line, *rest;
	struct error err = {0};
	char begin[16];
	size_t size;
	int cells = 0;

	snprintf(begin, sizeof(begin), "| %s |", device);
	must(file_read(&page, &size, SOURCE_DIR "/docs/reference/training-combinations.md", 1 << 20, &err),
	     &err);
	text = strdup(page);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!strncmp(line, begin, strlen(begin)))
			cells += check_row(line, page);
	assert_int_equal(cells, rows * COLUMNS);
	free(text);
	free(page);
}

static void cells_of_a_cpu_are_as_the_table_says(void **state)
{
	(void)state;
	check_rows("cpu", 8);
}

static void cells_of_a_gpu_are_as_the_table_says(void **state)
{
	(void)state;
	skip_without_kernels();
	check_rows("gpu", 14);
}

/* -- several ranks: a plan says whether they go together -- */

enum { RANKS = 4, STAGES = 4 };

static enum status plan_rank(char *const cell[16], unsigned stage, unsigned group, struct error *err)
{
	struct shape shape = shape_of(FAMILY_LLAMA);
	struct stepper s;
	struct config c;
	char text[768];
	enum status st;

	shape.layers = 4;
	shape.hidden = 80;
	shape.ffn = 64;
	shape.vocab = 128;
	snprintf(
		text, sizeof(text),
		"model: {path: /m%s}\n%s\ndata: {train: /t, max_seq_length: %d}\n"
		"training: {device: %.3s, per_device_train_batch_size: %d, global_batch_size: 8, learning_rate: 1e-2, "
		"zero_stage: %u, dp_shard_size: %u%s%s%s%s}\n",
		!strcmp(cell[1], "nf4") ? ", load_in_4bit: true" : "",
		!strcmp(cell[2], "full") ? "" : "lora: {r: 8, alpha: 6}", LENGTH, cell[0], ROWS / LENGTH,
		stage, group, precision_of(cell[1]),
		!strcmp(cell[2], "full") ? ", full_finetuning: true" : "", !strcmp(cell[3], "-") ? "" : ", ",
		!strcmp(cell[3], "-") ? "" : cell[3]);
	st = config_parse(&c, "t", text, strlen(text), err);
	if (st)
		return st;
	c.place.rank = RANKS - 1;
	c.place.ranks = RANKS;
	st = stepper_plan(&s, &shape, &c, THREADS, err);
	if (!st && stage)
		assert_int_equal(s.model->shards.ranks,
				 group ? group : RANKS / c.training.tensor_parallel_size);
	stepper_release(&s);
	config_release(&c);
	return st;
}

static void check_ranks(char *const cell[16], unsigned stage, unsigned group, const char *page)
{
	const char *is = cell[4 + stage];
	struct error err = {0};
	char mark[16], words[128] = "";
	const char *at;
	const enum status st = plan_rank(cell, stage, group, &err);

	if (!strcmp(is, "yes")) {
		if (st)
			fail_msg("%s %s %s %s, stage %u, groups of %u: %s", cell[0], cell[1], cell[2],
				 cell[3], stage, group, err.text);
		return;
	}
	snprintf(mark, sizeof(mark), "\n- %s: \"", is);
	at = strstr(page, mark);
	if (!at || sscanf(at + strlen(mark), "%127[^\"]", words) != 1)
		fail_msg("%s %s: no note %s", cell[0], cell[3], is);
	if (!st || !strstr(err.text, words))
		fail_msg("%s %s %s %s, stage %u: status %d: %s", cell[0], cell[1], cell[2], cell[3], stage,
			 (int)st, err.text);
}

static void cells_of_several_ranks_are_as_the_table_says(void **state)
{
	char *page = NULL, *text, *line, *rest, *cell[16];
	struct error err = {0};
	size_t size;
	int rows = 0;

	(void)state;
	must(file_read(&page, &size, SOURCE_DIR "/docs/reference/training-combinations.md", 1 << 20, &err),
	     &err);
	text = strdup(page);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, "| gpu x 4 |", 11) && strncmp(line, "| cpu x 4 |", 11))
			continue;
		rows++;
		assert_int_equal(cells_of(line, cell), 4 + STAGES);
		for (unsigned stage = 0; stage < STAGES; stage++) {
			check_ranks(cell, stage, 0, page);
			if (stage)
				check_ranks(cell, stage, 2, page);
		}
	}
	assert_int_equal(rows, 31);
	free(text);
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_of_a_cpu_are_as_the_table_says),
		cmocka_unit_test(cells_of_a_gpu_are_as_the_table_says),
		cmocka_unit_test(cells_of_several_ranks_are_as_the_table_says),
	};

	fakes_take();
	return cmocka_run_group_tests_name("train_combinations", tests, NULL, NULL);
}
