/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"
#include "test.h"

#include "core/file/file.h"
#include "model/files/fingerprint.h"
#include "model/files/model_folder.h"
#include "model/files/peft/base.h"
#include "model/files/random_weights.h"

struct made {
	uint64_t seed;
	const char *other; /* the tensor that has one number of its own; NULL: none */
	int64_t row;	   /* in this row */
};

static enum status rows(void *arg, const struct named *n, int64_t row, int64_t count, float *out,
			struct error *err)
{
	const struct made *m = arg;

	(void)err;
	random_weights(n, m->seed, row, count, out);
	if (m->other && !strcmp(n->hf, m->other) && m->row >= row && m->row < row + count)
		out[(m->row - row) * n->cols + n->cols - 1] += 0.5f;
	return STATUS_OK;
}

static void open_made(struct weights *w, const char *scratch, const char *shape, enum dtype dtype,
		      const struct made *made)
{
	static int number;
	struct shape s;
	const struct folder_options o = {.shape = &s,
					 .dtype = dtype,
					 .shard_bytes = UINT64_MAX,
					 .rows = rows,
					 .arg = (void *)(uintptr_t)made};
	struct error err = {0};
	char dir[PATH_MAX];

	shape_by_name(&s, shape, NULL);
	snprintf(dir, sizeof(dir), "%s/%d", scratch, number++);
	if (folder_write(dir, &o, &err) || weights_open(w, dir, &err))
		fail_msg("%s", err.text);
}

static const char *take(const struct weights *w, enum fingerprint_of of)
{
	static char hex[2][FINGERPRINT_SIZE];
	static int turn;
	struct error err = {0};

	turn = !turn;
	if (weights_fingerprint(hex[turn], w, of, &err))
		fail_msg("%s", err.text);
	return hex[turn];
}

static void test_fingerprint__numbers_are_the_same_in_another_type_and_bytes_are_not(void **state)
{
	const struct made plain = {.seed = 1};
	struct weights bf16, f32;

	open_made(&bf16, *state, "tiny", DTYPE_BF16, &plain);
	open_made(&f32, *state, "tiny", DTYPE_F32, &plain);
	assert_string_equal(take(&bf16, FINGERPRINT_NUMBERS), take(&f32, FINGERPRINT_NUMBERS));
	assert_string_not_equal(take(&bf16, FINGERPRINT_BYTES), take(&f32, FINGERPRINT_BYTES));
	assert_string_equal(take(&bf16, FINGERPRINT_BYTES), take(&bf16, FINGERPRINT_BYTES));
	weights_release(&bf16);
	weights_release(&f32);
}

/* Embedding: 320 rows, of which 0, 45, 91 .. 319 are looked at. */
static void test_fingerprint__other_weights_have_another_one(void **state)
{
	static const struct {
		struct made made;
		const char *shape;
		bool same;
	} others[] = {
		{{.seed = 2}, "tiny", false},
		{{.seed = 1}, "tiny-llama", false},
		{{.seed = 1, .other = "model.norm.weight"}, "tiny", false},
		{{.seed = 1, .other = "model.layers.1.mlp.up_proj.weight", .row = 159}, "tiny", false},
		{{.seed = 1, .other = "model.embed_tokens.weight", .row = 91}, "tiny", false},
		{{.seed = 1, .other = "model.embed_tokens.weight", .row = 92},
		 "tiny",
		 true}, /* what it is not to see */
	};
	const struct made plain = {.seed = 1};
	struct weights w, other;

	open_made(&w, *state, "tiny", DTYPE_BF16, &plain);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		open_made(&other, *state, others[i].shape, DTYPE_BF16, &others[i].made);
		for (int of = FINGERPRINT_BYTES; of <= FINGERPRINT_NUMBERS; of++)
			if (!strcmp(take(&w, (enum fingerprint_of)of),
				    take(&other, (enum fingerprint_of)of)) != others[i].same)
				fail_msg("other %zu, %d", i, of);
		weights_release(&other);
	}
	weights_release(&w);
}

struct told {
	char text[1024];
	int lines;
};

static void listen(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	struct told *told = arg;

	(void)level, (void)topic;
	snprintf(told->text, sizeof(told->text), "%s", line);
	told->lines++;
}

static void test_peft_base__an_adapter_goes_on_the_weights_it_was_trained_over(void **state)
{
	const struct made plain = {.seed = 1}, another = {.seed = 2};
	struct peft p = {.path = "run/adapter", .config = {.base = "/models/small"}};
	struct told told = {0};
	const struct log log = {.sink = listen, .arg = &told};
	struct error err = {0};
	struct weights w, other;

	open_made(&w, *state, "tiny", DTYPE_BF16, &plain);
	open_made(&other, *state, "tiny", DTYPE_BF16, &another);
	snprintf(p.config.base_sum, sizeof(p.config.base_sum), "%s", take(&w, FINGERPRINT_NUMBERS));
	assert_int_equal(peft_check_base(&p, &w, false, &log, &err), STATUS_OK);
	assert_int_equal(told.lines, 0);
	assert_int_equal(peft_check_base(&p, &other, false, &log, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "run/adapter: it is an adapter of /models/small, but "));
	assert_non_null(strstr(err.text, other.path));
	assert_int_equal(peft_check_base(&p, &other, true, &log, &err), STATUS_OK);
	assert_non_null(strstr(told.text, "has other weights"));
	/* One of PEFT's: by the name of its base alone, wherever that lies. */
	p.config.base_sum[0] = '\0';
	told.lines = 0;
	snprintf(p.config.base, sizeof(p.config.base), "hub/%s/", strrchr(w.path, '/') + 1);
	assert_int_equal(peft_check_base(&p, &w, false, &log, &err), STATUS_OK);
	assert_int_equal(told.lines, 0);
	assert_int_equal(peft_check_base(&p, &other, false, &log, &err), STATUS_OK);
	assert_int_equal(told.lines, 1);
	assert_non_null(strstr(told.text, p.config.base));
	weights_release(&w);
	weights_release(&other);
}

/* KiB of the model's files that are in this process's memory; -1: the system does not say. */
static long resident(const struct weights *w)
{
	char line[PATH_MAX + 128];
	FILE *maps = fopen("/proc/self/smaps", "r");
	bool ours = false;
	unsigned long end;
	long kib = 0, one;

	if (!maps)
		return -1;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%*x-%lx ", &end) == 1) /* a mapping begins */
			ours = strstr(line, w->path) && strstr(line, ".safetensors");
		else if (ours && sscanf(line, "Rss: %ld kB", &one) == 1)
			kib += one;
	}
	fclose(maps);
	return kib;
}

/* The base is in memory once: as what it became. */
static void test_weights__files_that_were_read_are_forgotten(void **state)
{
	const struct made plain = {.seed = 1};
	struct weights_slot slot = {.name = "model.embed_tokens.weight"};
	struct error err = {0};
	struct weights w;
	float *numbers;

	open_made(&w, *state, "tiny", DTYPE_BF16, &plain);
	if (resident(&w) < 0) {
		weights_release(&w);
		skip();
	}
	assert_true(resident(&w) > 0); /* its header was read */
	take(&w, FINGERPRINT_NUMBERS);
	assert_int_equal(resident(&w), 0);
	slot.to = (struct mat){
		.rows = w.shape.vocab, .cols = w.shape.hidden, .ld = w.shape.hidden, .dtype = DTYPE_F32};
	slot.to.data = numbers = calloc((size_t)(slot.to.rows * slot.to.cols), sizeof(*numbers));
	assert_non_null(numbers);
	assert_int_equal(weights_load(&w, &slot, 1, &err), STATUS_OK);
	assert_int_equal(resident(&w), 0);
	assert_int_equal(weights_rows(&w, slot.name, 3, 1, numbers, &err), STATUS_OK);
	assert_true(resident(&w) > 0);
	assert_memory_equal(numbers, numbers + 3 * w.shape.hidden, (size_t)w.shape.hidden * sizeof(*numbers));
	free(numbers);
	weights_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_fingerprint__numbers_are_the_same_in_another_type_and_bytes_are_not),
		scratch_test(test_fingerprint__other_weights_have_another_one),
		scratch_test(test_weights__files_that_were_read_are_forgotten),
		scratch_test(test_peft_base__an_adapter_goes_on_the_weights_it_was_trained_over),
	};

	return cmocka_run_group_tests_name("model_fingerprint", tests, NULL, NULL);
}
