/* SPDX-License-Identifier: Apache-2.0 */
/* What fits into how much memory: the sizes that are found, and what is told where nothing does. */
#include "test.h"

#include <unistd.h>
#include "core/file/file.h"
#include "train/config/settings.h"
#include "train/memory/memory_fit.h"

enum { THREADS = 2 };

struct bed {
	struct shape shape;
	struct config c;
	struct memory_fit fit;
};

static void make(struct bed *b, const char *lora, const char *training)
{
	struct error err = {0};
	char text[512];

	snprintf(text, sizeof(text),
		 "model: {path: /m}\n%s\ndata: {train: /t, max_seq_length: 512}\ntraining: {%s}\n", lora,
		 training);
	if (config_parse(&b->c, "t", text, strlen(text), &err))
		fail_msg("%s", err.text);
	assert_int_equal(shape_by_name(&b->shape, "tiny", &err), STATUS_OK);
	b->fit = (struct memory_fit){.shape = &b->shape, .threads = THREADS};
}

static uint64_t planned(const struct bed *b, uint32_t rows, uint32_t micros)
{
	struct config c = b->c;
	struct memory_plan m;
	struct error err = {0};

	c.training.per_device_train_batch_size = rows;
	c.training.gradient_accumulation_steps = micros;
	assert_int_equal(memory_plan(&m, &b->shape, &c, THREADS, &err), STATUS_OK);
	return m.bytes;
}

/* Of 24 rows a step the divisors 1, 2, 3, 4, 6, 8, 12, 24: each is found where it alone is the largest that
 * fits. */
static void the_largest_micro_batch_that_fits_is_found(void **state)
{
	static const uint32_t divisors[] = {1, 2, 3, 4, 6, 8, 12, 24};
	struct bed b;

	(void)state;
	make(&b, "lora: {r: 4}",
	     "per_device_train_batch_size: 6, gradient_accumulation_steps: 4, "
	     "per_device_eval_batch_size: 2, auto_find_batch_size: true");
	for (size_t i = 0; i < sizeof(divisors) / sizeof(divisors[0]); i++) {
		struct config c = b.c;

		b.fit.available = planned(&b, divisors[i], 24 / divisors[i]) / 9 * 10 + 100;
		memory_fit_settle(&c, &b.fit);
		assert_int_equal(c.training.per_device_train_batch_size, divisors[i]);
		assert_int_equal(c.training.gradient_accumulation_steps, 24 / divisors[i]);
		assert_int_equal(c.training.per_device_eval_batch_size, divisors[i] < 2 ? divisors[i] : 2);
		assert_false(c.training.auto_find_batch_size);
	}
	b.fit.available = 1000; /* nothing does: the least there is */
	memory_fit_settle(&b.c, &b.fit);
	assert_int_equal(b.c.training.per_device_train_batch_size, 1);
	assert_int_equal(b.c.training.gradient_accumulation_steps, 24);
	config_release(&b.c);
}

/* The least recomputation that fits, each where the one before it does not; the last one without the room's
 * tenth too; and none where nothing fits, so that the message tells of the settings to turn. */
static void the_least_recomputation_that_fits_is_found(void **state)
{
	static const enum config_recompute levels[] = {CONFIG_RECOMPUTE_NONE, CONFIG_RECOMPUTE_CHEAP,
						       CONFIG_RECOMPUTE_FULL};
	uint64_t bytes[3];
	struct config c;
	struct bed b;

	(void)state;
	make(&b, "lora: {r: 4}", "recompute: auto");
	assert_int_equal(b.c.training.recompute, CONFIG_RECOMPUTE_AUTO);
	for (int i = 0; i < 3; i++) {
		b.c.training.recompute = levels[i];
		bytes[i] = planned(&b, 8, 1);
		assert_true(!i || bytes[i] < bytes[i - 1]);
	}
	b.c.training.recompute = CONFIG_RECOMPUTE_AUTO;
	b.c.training.per_device_train_batch_size = 8;
	b.c.training.gradient_accumulation_steps = 1;
	for (int i = 0; i < 3; i++) {
		c = b.c;
		b.fit.available = bytes[i] / 9 * 10 + 100;
		memory_fit_settle(&c, &b.fit);
		assert_int_equal(c.training.recompute, levels[i]);
		assert_int_equal(c.training.gradient_checkpointing, i == 2);
		assert_int_equal(c.training.per_device_train_batch_size, 8);
	}
	c = b.c;
	b.fit.available = bytes[2];
	memory_fit_settle(&c, &b.fit);
	assert_int_equal(c.training.recompute, CONFIG_RECOMPUTE_FULL);
	c = b.c;
	b.fit.available = bytes[2] - 1;
	memory_fit_settle(&c, &b.fit);
	assert_int_equal(c.training.recompute, CONFIG_RECOMPUTE_NONE);
	c = b.c;
	b.fit.available = 0; /* not known */
	memory_fit_settle(&c, &b.fit);
	assert_int_equal(c.training.recompute, CONFIG_RECOMPUTE_NONE);
	c.training.recompute = CONFIG_RECOMPUTE_CHEAP; /* as stated, whatever fits */
	b.fit.available = 1000;
	memory_fit_settle(&c, &b.fit);
	assert_int_equal(c.training.recompute, CONFIG_RECOMPUTE_CHEAP);
	config_release(&b.c);
}

/* Nothing is kept for a backward of held-out rows, and nothing for rows that nobody named. */
static void evaluation_is_planned_forward_alone(void **state)
{
	struct bed b;
	uint64_t none, held, trained;

	(void)state;
	make(&b, "lora: {r: 4}", "per_device_eval_batch_size: 1");
	none = planned(&b, 8, 1);
	trained = planned(&b, 64, 1);
	b.c.training.per_device_eval_batch_size = 64;
	assert_int_equal(planned(&b, 8, 1), none);
	b.c.data.eval = b.c.data.train;
	held = planned(&b, 8, 1);
	assert_true(held > none && held < trained);
	b.c.data.eval = (struct opt_words){0};
	config_release(&b.c);
}

static enum status check(const struct bed *b, struct error *err)
{
	struct memory_plan m;
	struct error none = {0};

	assert_int_equal(memory_plan(&m, &b->shape, &b->c, THREADS, &none), STATUS_OK);
	return memory_fit_check(&b->c, &b->fit, &m, err);
}

static void says(const struct error *err, const char *words)
{
	if (!strstr(err->text, words))
		fail_msg("\"%s\" is not said: %s", words, err->text);
}

/* Each setting that is named gives what is said of it, and stands in the order of what it costs. */
static void too_little_memory_names_what_to_turn(void **state)
{
	struct bed b;
	struct error err = {0};
	struct memory_plan m;
	struct memory_fit_knob knobs[MEMORY_FIT_KNOBS];
	size_t count, length;

	(void)state;
	make(&b, "lora: {r: 4}", "per_device_train_batch_size: 8, gradient_accumulation_steps: 2");
	assert_int_equal(check(&b, &err), STATUS_OK); /* nobody knows what there is */
	b.fit.available = planned(&b, 8, 2);
	assert_int_equal(check(&b, &err), STATUS_OK);
	b.fit.available = planned(&b, 4, 4) / 9 * 10 + 100;
	assert_int_equal(check(&b, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
	says(&err, "are available: saved ");
	says(&err, "; change one of these settings: training: per_device_train_batch_size: 4, "
		   "gradient_accumulation_steps: 4 (");
	says(&err, "; data: max_seq_length: ");
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	count = memory_fit_knobs(knobs, &b.c, &b.fit, &m);
	assert_true(count >= 3);
	assert_true(knobs[0].fits && knobs[0].bytes == planned(&b, 4, 4));
	for (length = 0; length < count && strncmp(knobs[length].setting, "data: max_seq_length: ", 22); length++)
		;
	assert_true(length < count && knobs[length].fits && knobs[length].bytes <= memory_fit_room(&b.fit));
	config_release(&b.c);
}

/* What is made again changes nothing of what is learned, and is named before what does: each level above the
 * configuration's own, in words that a configuration which states recompute takes in their place. */
static void recomputation_is_named_by_its_level(void **state)
{
	static const char *const levels[] = {"none", "cheap", "full"};
	struct bed b, turned;
	struct memory_plan m;
	struct error err = {0};
	struct memory_fit_knob knobs[MEMORY_FIT_KNOBS];
	char training[160];

	(void)state;
	for (size_t own = 0; own < 3; own++) {
		size_t count, next = own + 1;

		snprintf(training, sizeof(training), "per_device_train_batch_size: 8, recompute: %s", levels[own]);
		make(&b, "lora: {r: 4}", training);
		assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
		b.fit.available = 20000000;
		count = memory_fit_knobs(knobs, &b.c, &b.fit, &m);
		for (size_t i = 1; i < count; i++) { /* behind the micro-batch */
			char wanted[64];

			if (next == 3 || !strncmp(knobs[i].setting, "data: ", 6))
				break;
			snprintf(wanted, sizeof(wanted), "training: recompute: %s", levels[next++]);
			assert_string_equal(knobs[i].setting, wanted);
			snprintf(training, sizeof(training), "per_device_train_batch_size: 8, %s",
				 knobs[i].setting + strlen("training: "));
			make(&turned, "lora: {r: 4}", training);
			assert_int_equal(knobs[i].bytes, planned(&turned, 8, 1));
			config_release(&turned.c);
		}
		assert_int_equal(next, 3);
		config_release(&b.c);
	}
}

/* The setting that is named is the one that is too large. */
static void a_large_evaluation_is_what_is_named(void **state)
{
	struct bed b;
	struct memory_plan m;
	struct error err = {0};
	struct memory_fit_knob knobs[MEMORY_FIT_KNOBS];

	(void)state;
	make(&b, "lora: {r: 4}", "per_device_train_batch_size: 1, per_device_eval_batch_size: 64");
	b.c.data.eval = b.c.data.train;
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	b.c.training.per_device_eval_batch_size = 16;
	b.fit.available = planned(&b, 1, 1) / 9 * 10 + 100;
	b.c.training.per_device_eval_batch_size = 64;
	assert_true(memory_fit_knobs(knobs, &b.c, &b.fit, &m) >= 1);
	assert_string_equal(knobs[0].setting, "training: per_device_eval_batch_size: 16");
	assert_true(knobs[0].fits && knobs[0].bytes < m.bytes);
	b.c.training.per_device_train_batch_size = 64; /* both: the two are named together */
	b.c.training.gradient_accumulation_steps = 1;
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	assert_true(memory_fit_knobs(knobs, &b.c, &b.fit, &m) >= 1);
	assert_non_null(strstr(knobs[0].setting, "per_device_train_batch_size: "));
	assert_non_null(strstr(knobs[0].setting, ", per_device_eval_batch_size: "));
	b.c.data.eval = (struct opt_words){0};
	config_release(&b.c);
}

/* Of everything an adapter is what is left; where nothing helps by itself, what may be joined is. */
static void everything_is_told_what_an_adapter_takes(void **state)
{
	struct bed b;
	struct memory_plan m;
	struct error err = {0};
	struct memory_fit_knob knobs[MEMORY_FIT_KNOBS];
	size_t count;

	(void)state;
	make(&b, "", "full_finetuning: true, per_device_train_batch_size: 8");
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	b.fit.available = 20000000;
	count = memory_fit_knobs(knobs, &b.c, &b.fit, &m);
	for (size_t i = 0; i + 1 < count; i++)
		assert_null(strstr(knobs[i].setting, "lora: r:"));
	assert_true(count >= 2);
	assert_non_null(strstr(knobs[count - 1].setting,
			       "training: recompute: full, per_device_train_batch_size: 1,"));
	config_release(&b.c);
	make(&b, "", "full_finetuning: true, recompute: full");
	b.c.data.max_seq_length = 64;
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	b.fit.available = m.bytes - 1;
	count = memory_fit_knobs(knobs, &b.c, &b.fit, &m);
	assert_true(count == 2 && knobs[0].bytes < m.bytes && knobs[1].bytes < m.bytes);
	assert_string_equal(knobs[0].setting, "training: optim: adamw_8bit");
	assert_string_equal(knobs[1].setting, "lora: {r: 16} instead of full_finetuning");
	config_release(&b.c);
}

/* A model whose weights alone do not fit: only a base in 4 bits does. */
static void a_base_in_4_bits_is_told_where_weights_do_not_fit(void **state)
{
	struct bed b;
	struct memory_plan m;
	struct error err = {0};
	struct memory_fit_knob knobs[MEMORY_FIT_KNOBS];
	size_t count;

	(void)state;
	make(&b, "lora: {r: 16}", "device: gpu");
	assert_int_equal(shape_by_name(&b.shape, "qwen2-7b", &err), STATUS_OK);
	b.fit.available = 14000000000;
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	count = memory_fit_knobs(knobs, &b.c, &b.fit, &m);
	assert_true(count >= 1);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(knobs[i].fits, i + 1 == count);
	assert_string_equal(knobs[count - 1].setting, "model: load_in_4bit: true");
	assert_int_equal(memory_fit_check(&b.c, &b.fit, &m, &err), STATUS_NO_RESOURCE);
	says(&err, "change one of these settings: model: load_in_4bit: true (");
	b.c.model.load_in_4bit = true; /* two slots of a layer, and 4.13 of 16 bits */
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	assert_int_equal(m.bytes, knobs[count - 1].bytes);
	assert_in_range(m.arena[MEM_WEIGHTS], 5500000000, 5700000000);
	assert_in_range(m.arena[MEM_SLOTS], 930000000, 1010000000);
	config_release(&b.c);
}

static void more_tokens_than_can_be_counted_are_refused(void **state)
{
	struct bed b;
	struct memory_plan m;
	struct error err = {0};

	(void)state;
	make(&b, "lora: {r: 4}", "per_device_train_batch_size: 65536");
	b.c.data.max_seq_length = 65536;
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_BAD_INPUT);
	says(&err, "4294967296 tokens");
	config_release(&b.c);
}

/* What the device's allocator never gives is no room, neither for what is found nor for what is held against it. */
static void what_is_left_alone_is_not_planned_into(void **state)
{
	struct bed b;
	struct error err = {0};
	struct config c;
	uint64_t bytes;

	(void)state;
	make(&b, "lora: {r: 4}", "per_device_train_batch_size: 8, device: gpu, auto_find_batch_size: true");
	bytes = planned(&b, 8, 1);
	b.fit.leave = bytes;
	b.fit.available = 2 * bytes;
	assert_int_equal(memory_fit_most(&b.fit), bytes);
	assert_int_equal(memory_fit_room(&b.fit), bytes); /* less than 90 % */
	assert_int_equal(check(&b, &err), STATUS_OK);
	c = b.c;
	memory_fit_settle(&c, &b.fit);
	assert_int_equal(c.training.per_device_train_batch_size, 8);
	b.fit.available--;
	assert_int_equal(check(&b, &err), STATUS_NO_RESOURCE);
	says(&err, " of GPU memory, but only ");
	c = b.c;
	memory_fit_settle(&c, &b.fit);
	assert_int_equal(c.training.per_device_train_batch_size, 4);
	b.fit.available = bytes / 2; /* less than what is left alone */
	assert_int_equal(memory_fit_most(&b.fit), 0);
	config_release(&b.c);
}

/* Beside a GPU the host holds rows, and a copy of what is trained: both are named, with what makes them less. */
/* One CPU rank has no copies; of several, each copies its range, and rank 0 everything if it writes an adapter. On
 * GPUs, rank 0 copies everything, and the others their ranges. */
static void copies_of_several_ranks_are_planned(void **state)
{
	static const struct {
		const char *lora, *training;
		unsigned rank, ranks;
		uint64_t bytes, of; /* of a parameter */
	} rows[] = {
		{"", "full_finetuning: true, device: cpu", 0, 0, 0, 1},
		{"", "full_finetuning: true, device: cpu", 0, 4, 12, 4},
		{"", "full_finetuning: true, device: cpu", 3, 4, 12, 4},
		{"", "full_finetuning: true, device: gpu", 0, 4, 12, 1},
		{"", "full_finetuning: true, device: gpu", 1, 4, 12, 4},
		{"lora: {r: 16}", "device: cpu", 0, 4, 12, 1},
		{"lora: {r: 16}", "device: cpu", 2, 4, 12, 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bed b;
		struct memory_plan m;
		struct stepper plan;
		struct error err = {0};
		uint64_t expected;

		make(&b, rows[i].lora, rows[i].training);
		b.c.place.rank = rows[i].rank;
		b.c.place.ranks = rows[i].ranks;
		assert_int_equal(stepper_plan(&plan, &b.shape, &b.c, THREADS, &err), STATUS_OK);
		expected = rows[i].bytes * plan.model->params.length / rows[i].of;
		assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
		if (m.outside[MEMORY_HOST_PARAMS] < expected || m.outside[MEMORY_HOST_PARAMS] > expected + 3 * 256)
			fail_msg("row %zu: %llu, not %llu", i, (unsigned long long)m.outside[MEMORY_HOST_PARAMS],
				 (unsigned long long)expected);
		stepper_release(&plan);
		config_release(&b.c);
	}
}

static void the_hosts_memory_is_planned_beside_a_gpu(void **state)
{
	static const char rows[] = "fit-rows.jsonl";
	struct bed b;
	struct memory_plan m, larger;
	struct error err = {0};

	(void)state;
	make(&b, "", "full_finetuning: true, device: gpu");
	assert_int_equal(file_write(rows, "", 0, &err), STATUS_OK);
	assert_int_equal(truncate(rows, 1 << 30), 0); /* a hole: its size is looked at alone */
	b.c.data.train = (struct opt_words){.word = (const char *const[]){rows}, .count = 1};
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	assert_true(m.outside[MEMORY_HOST_PARAMS] > 0 && m.outside[MEMORY_PINNED] > 0);
	assert_int_equal(m.outside[MEMORY_ROWS], 1 << 30);
	b.c.training.per_device_eval_batch_size = 4 * b.c.training.per_device_train_batch_size;
	b.c.data.eval = (struct opt_words){.word = (const char *const[]){"none"}, .count = 1};
	assert_int_equal(memory_plan(&larger, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	assert_int_equal(larger.outside[MEMORY_PINNED] - m.outside[MEMORY_PINNED],
			 3 * 48 * 512 * (uint64_t)b.c.training.per_device_train_batch_size); /* 48 bytes a row */
	b.c.data.eval.count = 0;
	b.fit.host = m.host_bytes;
	assert_int_equal(memory_fit_check(&b.c, &b.fit, &m, &err), STATUS_OK);
	b.fit.host = m.host_bytes - 1;
	assert_int_equal(memory_fit_check(&b.c, &b.fit, &m, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
	says(&err, " of host memory, but only ");
	says(&err, "rows 1.07 GB");
	says(&err, "data: max_train_samples: ");
	error_clear(&err);
	b.c.data.train.count = 0;
	b.shape.layers = 600; /* nothing but parameters */
	assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
	b.fit.host = m.host_bytes - m.outside[MEMORY_HOST_PARAMS] / 2;
	assert_int_equal(memory_fit_check(&b.c, &b.fit, &m, &err), STATUS_NO_RESOURCE);
	says(&err, "copies ");
	says(&err, "training: optim: adamw_8bit, master_weights: none ("); /* split is not enough */
	says(&err, "lora: {r: 16} instead of full_finetuning (");
	assert_null(strstr(strstr(err.text, "lora: {r: 16}"), "not enough"));
	remove(rows);
	b.c.data.train = b.c.data.eval = (struct opt_words){0};
	config_release(&b.c);
}

/* Changes one setting, as the user does who follows the advice. */
static void change(struct config *c, const char *section, const char *name, const char *value)
{
	const struct config_section *s = config_section(section);
	struct error err = {0};

	assert_non_null(s);
	if (opt_set(&s->table, (char *)c + s->offset, name, value, "the advice", &err))
		fail_msg("%s: %s: %s: %s", section, name, value, err.text);
}

/* Follows "training: optim: adamw_8bit, master_weights: split", or "lora: {r: 16} instead of full_finetuning and
 * offload". */
static void follow(struct config *c, const char *advice)
{
	char text[160], section[32];
	char *rest, *at = text;
	int begin = 0;

	snprintf(text, sizeof(text), "%.159s", advice);
	assert_int_equal(sscanf(text, "%31[a-z]: %n", section, &begin), 1);
	if (text[begin] == '{') {
		c->has_lora = true;
		c->training.full_finetuning = false;
		if (strstr(advice, "master_weights"))
			c->training.master_weights = CONFIG_MASTER_FP32;
		if (strstr(advice, "offload"))
			c->training.offload = CONFIG_OFFLOAD_NONE;
		if (strstr(advice, "communication_data_type"))
			c->training.communication_data_type = CONFIG_COMMUNICATION_FP32;
		return;
	}
	for (at = strtok_r(text + begin, ",", &rest); at; at = strtok_r(NULL, ",", &rest)) {
		char name[40], value[40];

		assert_int_equal(sscanf(at, " %39[a-z_0-9]: %39s", name, value), 2);
		change(c, section, name, value);
	}
	c->training.gradient_checkpointing = c->training.recompute == CONFIG_RECOMPUTE_FULL;
}

#define OF_LORA "lora: {r: 64}", ""
#define OF_ALL "", "full_finetuning: true, "
/* Every mode of training, on a GPU that is too small. The configuration takes each setting of the message, and the plan
 * then has the bytes of the message. One of the settings is `due`. */
static void each_mode_names_settings_that_it_takes(void **state)
{
	static const struct {
		const char *lora, *full, *model, *training;
		double share; /* of the plan, which is available */
		const char *due;
	} modes[] = {
		{OF_LORA, "", "precision: bf16", 0.9, "training: recompute: cheap"},
		{OF_LORA, "", "precision: bf16", 0.4, "model: load_in_4bit: true"},
		{OF_LORA, "", "precision: fp8", 0.9, "training: recompute: cheap"},
		{OF_LORA, "", "precision: fp8, recompute: full", 0.9, "model: load_in_4bit: true"},
		{OF_LORA, "", "precision: tf32", 0.6, "training: recompute: full"},
		{OF_LORA, "", "precision: fp32", 0.6, "training: recompute: full"},
		{OF_LORA, ", load_in_4bit: true", "precision: bf16", 0.7, "training: recompute: full"},
		{OF_LORA, ", load_in_4bit: true", "precision: bf16, recompute: offload", 0.95, "training: per_device_train_batch_size: 1"},
		{OF_LORA, ", load_in_4bit: true", "precision: fp8", 0.7, "training: recompute: full"},
		{OF_ALL, "", "precision: fp32, recompute: full", 0.9, "training: optim: adamw_8bit"},
		{OF_ALL, "", "precision: tf32, recompute: full", 0.9, "training: offload: optimizer"},
		{OF_ALL, "", "precision: bf16, recompute: full", 0.75, "training: optim: adamw_8bit"},
		{OF_ALL, "", "precision: bf16, recompute: full", 0.5, "training: optim: adamw_8bit, master_weights: split"},
		{OF_ALL, "", "precision: fp8, recompute: full", 0.6, "training: optim: adamw_8bit, master_weights: split"},
		{OF_ALL, "", "optim: adamw_8bit, recompute: full", 0.75, "training: master_weights: split"},
		{OF_ALL, "", "optim: adamw_8bit, master_weights: split, recompute: full", 0.9, "training: master_weights: none"},
		{OF_ALL, "", "optim: adamw_bf16, master_weights: split, recompute: full", 0.75, "training: optim: adamw_8bit, master_weights: none"},
		{OF_ALL, "", "optim: adamw_8bit, master_weights: none, recompute: full", 0.8, "training: offload: optimizer"},
		{OF_ALL, "", "optim: adamw_bf16, recompute: full", 0.9, "training: optim: adamw_8bit"},
		{OF_ALL, "", "offload: optimizer, recompute: none", 0.7, "training: recompute: full"},
		{OF_ALL, "", "offload: optimizer, recompute: offload, communication_data_type: bf16", 0.75,
		 "lora: {r: 16} instead of full_finetuning and offload and communication_data_type"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct bed b;
		struct memory_plan m, turned;
		struct error err = {0};
		struct memory_fit_knob knobs[MEMORY_FIT_KNOBS];
		char text[512];
		size_t count;
		bool is_due = false;

		snprintf(text, sizeof(text),
			 "model: {path: /m%s}\n%s\ndata: {train: /t, max_seq_length: 4096}\n"
			 "training: {device: gpu, per_device_train_batch_size: 4, gradient_accumulation_steps: 4, %s%s}\n",
			 modes[i].model, modes[i].lora, modes[i].full, modes[i].training);
		if (config_parse(&b.c, "t", text, strlen(text), &err))
			fail_msg("%s: %s", modes[i].training, err.text);
		assert_int_equal(shape_by_name(&b.shape, "qwen2-7b", &err), STATUS_OK);
		assert_int_equal(memory_plan(&m, &b.shape, &b.c, THREADS, &err), STATUS_OK);
		b.fit = (struct memory_fit){.shape = &b.shape,
					    .threads = THREADS,
					    .available = (uint64_t)(modes[i].share * (double)m.bytes),
					    .host = UINT64_MAX / 4};
		assert_int_equal(memory_fit_check(&b.c, &b.fit, &m, &err), STATUS_NO_RESOURCE);
		count = memory_fit_knobs(knobs, &b.c, &b.fit, &m);
		assert_in_range(count, 1, MEMORY_FIT_KNOBS);
		for (size_t k = 0; k < count; k++) {
			struct config c = b.c; /* shares the texts */

			if (knobs[k].fits)
				says(&err, knobs[k].setting);
			is_due = is_due || !strncmp(knobs[k].setting, modes[i].due, strlen(modes[i].due));
			follow(&c, knobs[k].setting);
			error_clear(&err);
			if (config_check(&c, &err) || memory_plan(&turned, &b.shape, &c, THREADS, &err))
				fail_msg("%s: %s: %s", modes[i].training, knobs[k].setting, err.text);
			if (turned.bytes != knobs[k].bytes)
				fail_msg("%s: %s: %llu bytes, not %llu", modes[i].training, knobs[k].setting,
					 (unsigned long long)turned.bytes, (unsigned long long)knobs[k].bytes);
			memory_fit_check(&b.c, &b.fit, &m, &err);
		}
		if (!is_due)
			fail_msg("%s: no \"%s\" in: %s", modes[i].training, modes[i].due, err.text);
		config_release(&b.c);
	}
}

/* Adapters on a base model in 4 bits: 32 billion parameters on a GPU of 40 GB, 72 billion on one of 80 GB. */
static void large_models_in_4_bits_fit(void **state)
{
	static const struct {
		const char *shape, *more;
		uint64_t most;
	} models[] = {{"qwen2.5-32b", "", 40000000000},
		      {"qwen2-72b", "", 80000000000},
		      {"qwen2-72b", ", precision: fp8", 80000000000}};
	static const char text[] = "model: {path: /m, load_in_4bit: true}\nlora: {r: 64}\n"
				   "data: {train: /t, max_seq_length: 4096}\n"
				   "training: {device: gpu, recompute: full%s}\n";

	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		struct memory_plan m;
		struct error err = {0};
		struct shape shape;
		struct config c;
		char config[256];

		snprintf(config, sizeof(config), text, models[i].more);
		if (config_parse(&c, "t", config, strlen(config), &err))
			fail_msg("%s", err.text);
		assert_int_equal(shape_by_name(&shape, models[i].shape, &err), STATUS_OK);
		assert_int_equal(memory_plan(&m, &shape, &c, THREADS, &err), STATUS_OK);
		print_message("# %s%s: %.1f GB\n", models[i].shape, models[i].more, (double)m.bytes * 1e-9);
		assert_in_range(m.bytes, models[i].most / 2, models[i].most);
		config_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_micro_batch_that_fits_is_found),
		cmocka_unit_test(the_least_recomputation_that_fits_is_found),
		cmocka_unit_test(evaluation_is_planned_forward_alone),
		cmocka_unit_test(too_little_memory_names_what_to_turn),
		cmocka_unit_test(recomputation_is_named_by_its_level),
		cmocka_unit_test(a_large_evaluation_is_what_is_named),
		cmocka_unit_test(everything_is_told_what_an_adapter_takes),
		cmocka_unit_test(a_base_in_4_bits_is_told_where_weights_do_not_fit),
		cmocka_unit_test(more_tokens_than_can_be_counted_are_refused),
		cmocka_unit_test(what_is_left_alone_is_not_planned_into),
		cmocka_unit_test(copies_of_several_ranks_are_planned),
		cmocka_unit_test(the_hosts_memory_is_planned_beside_a_gpu),
		cmocka_unit_test(each_mode_names_settings_that_it_takes),
		cmocka_unit_test(large_models_in_4_bits_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
