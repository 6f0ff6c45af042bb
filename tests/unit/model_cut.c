/* SPDX-License-Identifier: Apache-2.0 */
/* Files of models and rows that another program cuts while they are read: each reader names the file, and what was
 * to be written is not there. */
#include "scratch.h"
#include "test.h"
#include "weights_bed.h"

#include "core/file/file.h"
#include "core/file/mapped.h"
#include "core/math/random.h"
#include "model/files/fingerprint.h"
#include "model/files/merge_adapter.h"
#include "model/files/peft/names.h"
#include "data/rows/rows.h"

enum { LEFT = 9000 }; /* bytes that a cut leaves: more than the page that the header is in */

struct cut {
	char base[PATH_MAX], file[PATH_MAX + 32], adapter[PATH_MAX], out[PATH_MAX];
	struct shape shape;
	struct weights weights;
	const char *victim;
};

static void begin(struct cut *c, const char *scratch)
{
	struct error err = {0};

	*c = (struct cut){0};
	shape_by_name(&c->shape, "tiny", NULL);
	make(c->base, scratch, "base", &c->shape, DTYPE_F32, UINT64_MAX);
	snprintf(c->file, sizeof(c->file), "%s/model.safetensors", c->base);
	snprintf(c->adapter, sizeof(c->adapter), "%.4000s/adapter", scratch);
	snprintf(c->out, sizeof(c->out), "%.4000s/out", scratch);
	c->victim = c->file;
	if (weights_open(&c->weights, c->base, &err))
		fail_msg("%s", err.text);
}

static void end(struct cut *c)
{
	weights_release(&c->weights);
	mapped_check(STATUS_OK, NULL); /* told once more, closed */
}

static void assert_names(const struct cut *c, const struct error *err)
{
	assert_int_equal(err->status, STATUS_BAD_INPUT);
	if (!strstr(err->text, c->victim) || !strstr(err->text, "another program shortened the file while assay read it"))
		fail_msg("%s", err->text);
}

/* Nothing at the name that was asked for, and nothing beside it. */
static void assert_nothing_written(const char *scratch)
{
	const struct dirent *e;
	DIR *d = opendir(scratch);

	assert_non_null(d);
	while ((e = readdir(d)))
		if (!strncmp(e->d_name, "out", 3))
			fail_msg("%s is there", e->d_name);
	closedir(d);
}

/* Matrices that were trained, for every layer's `targets`. */
static void make_adapter(const struct cut *c, const struct peft_config *config)
{
	size_t count = peft_names_count(&c->shape, config);
	struct peft_place *place = calloc(count, sizeof(*place));
	struct peft_slot *slot = calloc(count, sizeof(*slot));
	struct error err = {0};

	for (size_t i = 0; i < count; i++) {
		struct mat *m = &slot[i].mat;

		peft_names_at(&place[i], &c->shape, config, i);
		slot[i].name = place[i].base.hf;
		slot[i].part = place[i].part;
		m->rows = place[i].part == PEFT_A ? config->rank : place[i].base.rows;
		m->cols = m->ld = place[i].part == PEFT_B ? config->rank : place[i].base.cols;
		m->data = malloc(sizeof(float) * (size_t)(m->rows * m->cols));
		random_fill_f32(m->data, (size_t)(m->rows * m->cols), 3, (uint32_t)i, 0);
	}
	if (peft_write(c->adapter, config, &c->shape, slot, count, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < count; i++)
		free(slot[i].mat.data);
	free(place);
	free(slot);
}

/* Another program, when the first tensor was written. */
static bool cut_now(void *arg, uint64_t done, uint64_t all)
{
	const struct cut *c = arg;

	return !done || !all || !truncate(c->victim, LEFT);
}

static void test_cut__a_merge_names_its_base_and_writes_nothing(void **state)
{
	struct merge_options o = {.dtype = DTYPE_COUNT, .shard_bytes = 100000, .progress = cut_now};
	struct error err = {0};
	struct cut c;

	begin(&c, *state);
	o.arg = &c;
	assert_int_equal(merge_write(c.out, &c.weights, &o, &err), STATUS_BAD_INPUT);
	assert_names(&c, &err);
	assert_nothing_written(*state);
	end(&c);
}

static void test_cut__a_merge_names_its_adapter_and_writes_nothing(void **state)
{
	const struct peft_config config = {
		.rank = 4, .alpha = 8, .targets = 1u << PEFT_Q | 1u << PEFT_DOWN, .save = PEFT_SAVE_HEAD};
	struct merge_options o = {.dtype = DTYPE_COUNT, .shard_bytes = UINT64_MAX, .progress = cut_now};
	char file[PATH_MAX + 64];
	struct error err = {0};
	struct cut c;

	begin(&c, *state);
	make_adapter(&c, &config);
	snprintf(file, sizeof(file), "%s/" PEFT_WEIGHTS, c.adapter);
	c.victim = file;
	o.adapter = c.adapter;
	o.arg = &c;
	assert_int_equal(merge_write(c.out, &c.weights, &o, &err), STATUS_BAD_INPUT);
	assert_names(&c, &err);
	assert_nothing_written(*state);
	end(&c);
}

/* The last byte alone: no page is missing, and a number is. */
static void test_cut__a_merge_sees_a_cut_by_a_byte(void **state)
{
	struct merge_options o = {.dtype = DTYPE_COUNT, .shard_bytes = UINT64_MAX};
	struct error err = {0};
	struct stat about;
	struct cut c;

	begin(&c, *state);
	assert_int_equal(stat(c.file, &about), 0);
	assert_int_equal(truncate(c.file, about.st_size - 1), 0);
	assert_int_equal(merge_write(c.out, &c.weights, &o, &err), STATUS_BAD_INPUT);
	assert_names(&c, &err);
	assert_nothing_written(*state);
	end(&c);
}

/* As training and generation load their weights. */
static void test_cut__weights_are_not_loaded_from_a_cut_file(void **state)
{
	struct weights_slot slot = {.name = "lm_head.weight", .to = {.dtype = DTYPE_BF16}};
	struct error err = {0};
	struct named n;
	struct cut c;

	begin(&c, *state);
	assert_true(names_find(&n, &c.shape, slot.name));
	slot.to.rows = n.rows;
	slot.to.cols = slot.to.ld = n.cols;
	slot.to.data = malloc(sizeof(uint16_t) * (size_t)(n.rows * n.cols));
	assert_int_equal(truncate(c.file, LEFT), 0);
	assert_int_equal(weights_load(&c.weights, &slot, 1, &err), STATUS_BAD_INPUT);
	assert_names(&c, &err);
	free(slot.to.data);
	end(&c);
}

static void test_cut__no_fingerprint_is_taken_of_a_cut_file(void **state)
{
	static const enum fingerprint_of of[] = {FINGERPRINT_BYTES, FINGERPRINT_NUMBERS};

	for (size_t i = 0; i < 2; i++) {
		char hex[FINGERPRINT_SIZE];
		struct error err = {0};
		struct cut c;

		begin(&c, *state);
		assert_int_equal(truncate(c.file, LEFT), 0);
		assert_int_equal(weights_fingerprint(hex, &c.weights, of[i], &err), STATUS_BAD_INPUT);
		assert_names(&c, &err);
		end(&c);
		file_remove_tree(c.base);
	}
}

static void test_cut__an_adapter_is_not_loaded_from_a_cut_file(void **state)
{
	const struct peft_config config = {.rank = 64, .alpha = 8, .targets = 1u << PEFT_Q};
	float *numbers = calloc((size_t)64 * 256, sizeof(float));
	struct peft_slot slot[4] = {{0}};
	struct peft_place place[4];
	char file[PATH_MAX + 64];
	struct error err = {0};
	struct peft p;
	struct cut c;

	begin(&c, *state);
	make_adapter(&c, &config);
	snprintf(file, sizeof(file), "%s/" PEFT_WEIGHTS, c.adapter);
	c.victim = file;
	assert_int_equal(peft_names_count(&c.shape, &config), 4);
	assert_int_equal(peft_open(&p, c.adapter, &c.shape, &err), STATUS_OK);
	for (size_t i = 0; i < 4; i++) { /* all into one place: nobody looks at them */
		peft_names_at(&place[i], &c.shape, &config, i);
		slot[i] = (struct peft_slot){.name = place[i].base.hf, .part = place[i].part};
		slot[i].mat.rows = place[i].part == PEFT_A ? 64 : place[i].base.rows;
		slot[i].mat.cols = slot[i].mat.ld = place[i].part == PEFT_B ? 64 : place[i].base.cols;
		assert_true(slot[i].mat.rows * slot[i].mat.cols <= 64 * 256);
		slot[i].mat.data = numbers;
	}
	assert_int_equal(truncate(file, LEFT), 0);
	assert_int_equal(peft_load(&p, slot, 4, &err), STATUS_BAD_INPUT);
	assert_names(&c, &err);
	peft_release(&p);
	free(numbers);
	end(&c);
}

static void test_cut__a_row_of_a_cut_file_is_no_conversation(void **state)
{
	static const char row[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"%0200d\"}]}\n";
	char path[PATH_MAX];
	struct error err = {0};
	struct cut c = {.victim = path};
	struct chat chat;
	struct rows r;
	FILE *f;

	snprintf(path, sizeof(path), "%s/rows.jsonl", (char *)*state);
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 100; i++)
		fprintf(f, row, i); /* NOLINT: a constant */
	fclose(f);
	assert_int_equal(rows_open(&r, path, &err), STATUS_OK);
	assert_int_equal(r.count, 100);
	assert_int_equal(truncate(path, LEFT), 0);
	assert_int_equal(rows_read(&r, 0, ROWS_CHAT, &chat, &err), STATUS_OK);
	chat_release(&chat);
	assert_int_equal(rows_read(&r, 99, ROWS_CHAT, &chat, &err), STATUS_BAD_INPUT);
	assert_names(&c, &err);
	rows_release(&r);
	mapped_check(STATUS_OK, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_cut__a_merge_names_its_base_and_writes_nothing),
		scratch_test(test_cut__a_merge_names_its_adapter_and_writes_nothing),
		scratch_test(test_cut__a_merge_sees_a_cut_by_a_byte),
		scratch_test(test_cut__weights_are_not_loaded_from_a_cut_file),
		scratch_test(test_cut__no_fingerprint_is_taken_of_a_cut_file),
		scratch_test(test_cut__an_adapter_is_not_loaded_from_a_cut_file),
		scratch_test(test_cut__a_row_of_a_cut_file_is_no_conversation),
	};

	return cmocka_run_group_tests_name("model_cut", tests, NULL, NULL);
}
