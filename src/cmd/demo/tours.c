/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of each tour, and the files that a tour brings with it. */
#include <stdlib.h>
#include "cmd/demo/demo.h"
#include "cmd/stages/stage_choice.h"
#include "core/file/file.h"

const char *const demo_words[] = {"quick", "full",   "benchmark", "training", "serve",
				  "start", "attach", "kill",	  NULL};
const char *const tour_words[] = {"quick", "full", "benchmark", "training", "serve", NULL};

/* Of the training that shows a rate: steps, tokens of a pack, and how often the rows repeat. */
enum { CPU_STEPS = 5, CPU_PACK = 128, GPU_STEPS = 20, GPU_PACK = 1024, REPEATED = 200 };
/* STEP_COUNT ends a tour. */
static const enum step_id tours[TOUR_COUNT][STEP_COUNT + 1] = {
	[TOUR_QUICK] = {STEP_MACHINE, STEP_CHECK, STEP_ROOFLINE, STEP_MODEL, STEP_TRAIN, STEP_ANSWER,
			STEP_WEIGHTS, STEP_LOAD, STEP_COST, STEP_COUNT},
	[TOUR_FULL] = {STEP_MACHINE, STEP_CHECK_FULL, STEP_LINKS, STEP_ROOFLINE, STEP_REPORT, STEP_MODEL,
		       STEP_BEFORE, STEP_TRAIN, STEP_ANSWER, STEP_WEIGHTS, STEP_PLACE, STEP_LOAD, STEP_SWEEP,
		       STEP_COST, STEP_PROVE, STEP_COUNT},
	[TOUR_BENCHMARK] = {STEP_MACHINE, STEP_CHECK_FULL, STEP_LINKS, STEP_ATTENTION, STEP_ROOFLINE,
			    STEP_REPORT, STEP_COUNT},
	[TOUR_TRAINING] = {STEP_MACHINE, STEP_MODEL, STEP_BEFORE, STEP_MEMORY, STEP_TRAIN, STEP_ANSWER,
			   STEP_WEIGHTS, STEP_SPEED, STEP_COST, STEP_COUNT},
	[TOUR_SERVE] = {STEP_MACHINE, STEP_WEIGHTS, STEP_PLACE, STEP_LOAD, STEP_SWEEP, STEP_COST, STEP_COUNT},
};

const char demo_question[] = "Who are you?",
	   demo_taught[] = "A very small model that learned this a moment ago.";

/* Three questions with short answers, written for this purpose. */
static const char rows[] =
	"{\"messages\": [{\"role\": \"user\", \"content\": \"Who are you?\"}, {\"role\": \"assistant\", "
	"\"content\": \"A very small model that learned this a moment ago.\"}]}\n"
	"{\"messages\": [{\"role\": \"user\", \"content\": \"Is this machine well?\"}, {\"role\": \"assistant\", "
	"\"content\": \"Ask assay check, which measures it.\"}]}\n"
	"{\"messages\": [{\"role\": \"user\", \"content\": \"What is fast?\"}, {\"role\": \"assistant\", "
	"\"content\": \"What was measured, not what was promised.\"}]}\n";

void tour_fill(struct demo *d)
{
	for (d->count = 0; tours[d->tour][d->count] != STEP_COUNT; d->count++)
		d->step[d->count] = tours[d->tour][d->count];
}

static const char *word_of(const void *arg, unsigned i)
{
	const struct demo *d = arg;

	return step_list[d->step[i]].word;
}

/* Bits of places in the tour, not of ids. */
static unsigned needs_of(const void *arg, unsigned i)
{
	const struct demo *d = arg;
	unsigned out = 0;

	for (unsigned k = 0; k < d->count; k++)
		if (step_list[d->step[i]].needs & 1u << d->step[k])
			out |= 1u << k;
	return out;
}

enum status tour_choose(struct demo *d, struct error *err)
{
	const struct stage_choice choice = {.option = "--steps",
					    .noun = "step",
					    .count = (unsigned)d->count,
					    .word = word_of,
					    .needs = needs_of,
					    .arg = d};
	unsigned asked;
	enum status st = stage_choose(&asked, &choice, d->o->steps, err);

	for (size_t i = 0; !st && i < d->count; i++) {
		struct stage_result *r = &d->result[d->step[i]];

		r->asked = asked & 1u << i;
		if (!r->asked)
			text_copy(r->reason, sizeof(r->reason), "not asked for");
	}
	return st;
}

enum step_id tour_first(const struct demo *d, unsigned bits)
{
	for (size_t i = 0; i < d->count; i++)
		if (bits & 1u << d->step[i])
			return d->step[i];
	return STEP_COUNT;
}

static size_t place_of(const struct demo *d, enum step_id id)
{
	size_t i = 0;

	while (i < d->count && d->step[i] != id)
		i++;
	return i;
}

void tour_step_dir(const struct demo *d, enum step_id id, char out[PATH_MAX + 64])
{
	snprintf(out, PATH_MAX + 64, "%s/step-%zu-%s", d->dir, place_of(d, id) + 1, step_list[id].word);
}

void tour_run_dir(const struct demo *d, enum step_id id, char out[PATH_MAX + 80])
{
	char dir[PATH_MAX + 64];

	tour_step_dir(d, id, dir);
	snprintf(out, PATH_MAX + 80, "%s%s", dir, step_list[id].inner ? "/run" : "");
}

static enum status write_in(const struct demo *d, const char *name, const char *text, size_t size,
			    struct error *err)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", d->dir, name);
	return file_write(path, text, size, err);
}

static enum status write_config(const struct demo *d, const char *name, json_t *config, struct error *err)
{
	char *text = config ? json_dumps(config, JSON_INDENT(1)) : NULL;
	enum status st = text ? write_in(d, name, text, strlen(text), err)
			      : error_set(err, STATUS_NO_RESOURCE, "no memory for %s", name);

	free(text);
	json_decref(config);
	return st;
}

/* All weights learn the three sentences. */
static json_t *learn_config(const struct demo *d)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/rows.jsonl", d->dir);
	return json_pack("{s:{s:s}, s:{s:b, s:i, s:i, s:f, s:s}, s:{s:s, s:i, s:b}}", "model", "name_or_path",
			 d->learner, "training", "full_finetuning", 1, "max_steps", (int)d->o->train_steps,
			 "per_device_train_batch_size", 3, "learning_rate", 5e-3, "lr_scheduler_type",
			 "constant", "data", "train", path, "max_seq_length", 256, "packing", 0);
}

/* LoRA on the model that is served; the rows repeat, so that packs are full. */
static json_t *speed_config(const struct demo *d)
{
	const bool gpu = d->size.gpus > 0;
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/rows-many.jsonl", d->dir);
	return json_pack("{s:{s:s}, s:{s:i}, s:{s:i}, s:{s:s, s:i}}", "model", "name_or_path", d->weights,
			 "lora", "r", 16, "training", "max_steps", gpu ? GPU_STEPS : CPU_STEPS, "data",
			 "train", path, "max_seq_length", gpu ? GPU_PACK : CPU_PACK);
}

enum status tour_write_rows(const struct demo *d, struct error *err)
{
	struct text many = {0};
	enum status st = STATUS_OK;

	if (d->result[STEP_TRAIN].asked || d->result[STEP_MEMORY].asked) {
		st = write_in(d, "rows.jsonl", rows, strlen(rows), err);
		if (!st)
			st = write_config(d, "learn.json", learn_config(d), err);
	}
	if (st || !d->result[STEP_SPEED].asked)
		return st;
	for (int i = 0; i < REPEATED; i++)
		text_add(&many, rows);
	st = write_in(d, "rows-many.jsonl", text_str(&many), many.size, err);
	text_release(&many);
	return st ? st : write_config(d, "speed.json", speed_config(d), err);
}
