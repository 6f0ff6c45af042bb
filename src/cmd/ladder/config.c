/* SPDX-License-Identifier: Apache-2.0 */
/* The configurations of the jobs: one below all rungs, and the settings of the rungs on top of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cmd/ladder/ladder.h"
#include "core/file/file.h"
#include "core/math/random.h"
#include "model/shape/shape.h"
#include "train/config/settings.h"

/* Rows of a step, and rows for the evaluation. ladder.md, "The rungs", has the micro-batches that follow. */
enum { STEP_ROWS = 8, HELD_ROWS = 8 };
/* Tokens of a row beside its text: the template's. A given model may add a system message. */
enum { AROUND_TOKENS = 24, TEXT_LEAST = 8 };

static enum status set(struct config *c, const char *section, const char *name, const char *value,
		       struct error *err)
{
	const struct config_section *s = config_section(section);

	return opt_set(&s->table, (char *)c + s->offset, name, value, "ladder", err);
}

/* What all jobs have in common, whatever CONFIG says. */
static enum status set_common(struct ladder *l, struct error *err)
{
	static const struct rung_setting common[] = {
		{"training", "lr_scheduler_type", "constant"},
		{"training", "warmup_steps", "0"},
		{"training", "warmup_ratio", "0"},
		{"training", "num_decay_steps", "0"},
		{"training", "eval_steps", "0"},
		{"training", "eval_on_start", "true"},
		{"training", "per_device_eval_batch_size", "1"},
		{"training", "save_steps", "0"},
		{"training", "save_total_limit", "1"},
		{"training", "load_best_model_at_end", "false"},
		{"training", "early_stopping_patience", "0"},
		{"training", "auto_find_batch_size", "false"},
		{"training", "tensorboard", "false"},
		{"training", "logging_steps", "1"},
		{"training", "deterministic", "false"},
		{"training", "step_parts", "false"},
		{"training", "tune", "false"}, /* a step with tuning is no measurement */
		{"training", "zero_stage", "0"},
		{"training", "gpus", "1"},
		{"training", "dp_shard_size", "0"},
		{"training", "tensor_parallel_size", "1"},
		{"training", "global_batch_size", "0"},
		{"training", "per_device_train_batch_size", "1"},
	};
	char steps[24], rows[24], dir[PATH_MAX];
	struct config *c = &l->base;
	enum status st = STATUS_OK;

	snprintf(steps, sizeof(steps), "%llu", (unsigned long long)l->plan.steps);
	snprintf(rows, sizeof(rows), "%d", STEP_ROWS);
	for (size_t i = 0; !st && i < sizeof(common) / sizeof(common[0]); i++)
		st = set(c, common[i].section, common[i].name, common[i].value, err);
	if (!st)
		st = set(c, "training", "max_steps", steps, err);
	if (!st)
		st = set(c, "training", "gradient_accumulation_steps", rows, err);
	if (!st)
		st = set(c, "training", "device", l->plan.gpu ? "gpu" : "cpu", err);
	c->training.output_dir = NULL;
	snprintf(l->cache, sizeof(l->cache), "%s/rows", realpath(l->dir, dir) ? dir : l->dir);
	if (*l->plan.given && !c->data.cache_dir)
		c->data.cache_dir = l->cache;
	if (!c->data.eval.count)
		c->data.eval = c->data.train;
	if (!c->data.max_eval_samples || c->data.max_eval_samples > HELD_ROWS)
		c->data.max_eval_samples = HELD_ROWS;
	return st;
}

static enum status parse_own(struct ladder *l, struct error *err)
{
	char model[PATH_MAX + 32], rows[PATH_MAX + 32], held[PATH_MAX + 32];
	json_t *json;
	char *text;
	enum status st;

	snprintf(model, sizeof(model), "%s/model", l->dir);
	snprintf(rows, sizeof(rows), "%s/rows.jsonl", l->dir);
	snprintf(held, sizeof(held), "%s/held-out.jsonl", l->dir);
	json = json_pack("{s:{s:s, s:b}, s:{s:i}, s:{s:f}, s:{s:s, s:s, s:I}}", "model", "name_or_path",
			 *l->plan.shape ? model : l->plan.model, "random_weights", l->plan.random, "lora",
			 "r", 16, "training", "learning_rate", 1e-4, "data", "train", rows, "eval", held,
			 "max_seq_length", (json_int_t)l->plan.length);
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	st = text ? config_parse(&l->base, "ladder", text, strlen(text), err)
		  : error_set(err, STATUS_NO_RESOURCE, "no memory for the ladder's configuration");
	free(text);
	return st;
}

enum status ladder_write_text(const struct ladder *l, const char *name, const struct text *t,
			      struct error *err)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	return t->failed ? error_set(err, STATUS_NO_RESOURCE, "no memory for %s", name)
			 : file_write(path, text_str(t), t->size, err);
}

enum status ladder_base(struct ladder *l, struct error *err)
{
	enum status st = *l->plan.given ? config_read(&l->base, l->plan.given, err) : parse_own(l, err);

	if (st == STATUS_UNAVAILABLE) /* a file that the command names does not exist */
		st = err->status = STATUS_BAD_INPUT;
	if (!st && *l->plan.given)
		text_copy(l->plan.model, sizeof(l->plan.model), l->base.model.name_or_path);
	if (!st && *l->plan.given)
		l->plan.random = l->base.model.random_weights;
	return st ? st : set_common(l, err);
}

enum status ladder_base_again(struct ladder *l, struct error *err)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/base.yaml", l->dir);
	return config_read(&l->base, path, err);
}

static bool has_settings(const struct ladder *l, enum rung_id id, enum rung_id on);

bool ladder_trade_pays(const struct ladder *l, enum rung_id on)
{
	const struct ladder_job *own = &l->job[0][on], *below = NULL;

	for (int id = (int)on - 1; !below && id >= 0; id--)
		if (has_settings(l, on, (enum rung_id)id))
			below = &l->job[0][id];
	return below && own->ended && !own->code && own->v.tokens_per_s > below->v.tokens_per_s;
}

/* Whether the job of `id` has the settings of rung `on`. */
static bool has_settings(const struct ladder *l, enum rung_id id, enum rung_id on)
{
	if (on > id || *l->rung[on].lacks)
		return false;
	if (on == id || on == RUNG_BASELINE)
		return true;
	return rung_list[on].trade ? ladder_trade_pays(l, on) : !(l->job[0][on].ended && l->job[0][on].code);
}

static enum status set_rungs(const struct ladder *l, struct config *c, enum rung_id id, struct error *err)
{
	enum status st = STATUS_OK;

	for (int on = 0; on <= (int)id; on++) {
		const struct rung_setting *s = rung_list[on].setting;

		for (; has_settings(l, id, (enum rung_id)on) && s->name && !st; s++)
			st = set(c, s->section, s->name, s->value, err);
	}
	/* settings with the same meaning agree, as config_settle leaves them */
	c->training.bf16 = c->training.precision != CONFIG_PRECISION_FP32 &&
			   c->training.precision != CONFIG_PRECISION_TF32;
	c->training.gradient_checkpointing = c->training.recompute == CONFIG_RECOMPUTE_FULL;
	if (c->training.precision != CONFIG_PRECISION_FP8)
		c->training.fp8_layers.count = 0;
	return st;
}

/* The words of the configuration's own check, without the place. */
static void take_words(char *out, size_t size, const char *words)
{
	const char *place = strstr(words, ": ");

	text_copy(out, size, place ? place + 2 : words);
}

enum status ladder_config(const struct ladder *l, struct text *out, enum rung_id id, bool loss,
			  struct error *err)
{
	struct config job = l->base, read; /* shares the texts of the base */
	struct error why = {0};
	enum status st = set_rungs(l, &job, id, err);

	if (st)
		return st;
	if (loss) {
		job.model.name_or_path = l->plan.loss_model;
		job.model.tokenizer = NULL;
		job.model.random_weights = false;
	}
	config_write(out, &job);
	st = config_parse(&read, "ladder", text_str(out), out->size, &why);
	if (st) {
		err->status = st;
		take_words(err->text, sizeof(err->text), why.text);
		return st;
	}
	config_release(&read);
	return STATUS_OK;
}

/* Why no kernels of adapters can be fused; NULL: they can. */
static const char *why_not_fused(const struct config *c)
{
	if (!c->has_lora)
		return "only the kernels of adapters can be fused, and this configuration trains all weights";
	return c->lora.dropout > 0 ? "adapters with dropout are never fused" : NULL;
}

void ladder_find_rungs(struct ladder *l)
{
	for (int i = 0; i < RUNG_COUNT; i++) {
		struct ladder_rung *r = &l->rung[i];
		struct text text = {0};
		struct error err = {0};

		*r->lacks = '\0';
		if (!l->plan.gpu && rung_list[i].not_cpu)
			text_copy(r->lacks, sizeof(r->lacks), rung_list[i].not_cpu);
		else if (l->plan.cc && l->plan.cc < rung_list[i].least_cc)
			snprintf(r->lacks, sizeof(r->lacks),
				 "it needs a GPU of compute capability %u.%u, and this one has %u.%u",
				 rung_list[i].least_cc / 10, rung_list[i].least_cc % 10, l->plan.cc / 10,
				 l->plan.cc % 10);
		else if (i == RUNG_PARALLEL && l->plan.gpus < 2)
			text_copy(r->lacks, sizeof(r->lacks), "assay may use one GPU of this machine only");
		else if (i == RUNG_FUSED && why_not_fused(&l->base))
			text_copy(r->lacks, sizeof(r->lacks), why_not_fused(&l->base));
		else if (ladder_config(l, &text, (enum rung_id)i, false, &err))
			text_copy(r->lacks, sizeof(r->lacks), err.text);
		text_release(&text);
		r->below = -1;
		for (int below = 0; below < i; below++)
			if (has_settings(l, (enum rung_id)i, (enum rung_id)below))
				r->below = below;
	}
}

/* -- rows of the ladder's own -- */

/* Words that vocabularies have as one token each. */
static const char *const words[] = {"the",  "time",  "and", "water", "of",   "light", "to",   "house",
				    "in",   "paper", "is",  "green", "for",  "music", "with", "river",
				    "on",   "table", "as",  "money", "by",   "world", "from", "night",
				    "that", "stone", "was", "north", "when", "small", "over", "sound"};

/* Appends words of so many tokens. The made model's tokens are bytes, a given one's are words. */
static void add_words(struct text *out, uint64_t stream, uint64_t tokens, bool bytes)
{
	for (uint64_t i = 0, used = 0; used < tokens; i++) {
		const char *word = words[random_u32(stream, 1, i) % (sizeof(words) / sizeof(words[0]))];

		text_addf(out, "%s%s", i ? " " : "", word);
		used += bytes ? strlen(word) + 1 : 1;
	}
}

/* Lengths from an eighth to seven eighths of a sequence: half of it on average. */
static uint64_t tokens_of(uint64_t row, uint64_t length)
{
	return length / 8 + row * 5 % 16 * length / 20;
}

static enum status write_rows(const struct ladder *l, const char *name, uint64_t first, uint64_t count,
			      struct error *err)
{
	const bool bytes = *l->plan.shape;
	struct text out = {0};
	enum status st;

	for (uint64_t row = first; row < first + count; row++) {
		const uint64_t tokens = tokens_of(row, l->plan.length);
		const uint64_t text =
			tokens > AROUND_TOKENS + TEXT_LEAST ? tokens - AROUND_TOKENS : TEXT_LEAST;

		text_add(&out, "{\"messages\": [{\"role\": \"user\", \"content\": \"");
		add_words(&out, 2 * row, text / 4, bytes);
		text_add(&out, "\"}, {\"role\": \"assistant\", \"content\": \"");
		add_words(&out, 2 * row + 1, text - text / 4, bytes);
		text_add(&out, "\"}]}\n");
	}
	st = ladder_write_text(l, name, &out, err);
	text_release(&out);
	return st;
}

/* A folder with headers, which the trainer fills with random numbers. */
static enum status make_model(const struct ladder *l, struct error *err)
{
	struct stage_command k = {0};
	struct stage_child child;
	char dir[PATH_MAX + 32], how[128];
	enum status st;

	snprintf(dir, sizeof(dir), "%s/make-model", l->dir);
	stage_command_words(
		&k, (const char *const[]){"make-model", "--holes", "--shape", l->plan.shape, "--out", NULL});
	stage_command_add(&k, "%s/model", l->dir);
	st = file_make_dir(dir, err);
	if (!st)
		st = stage_child_start(&child, &k, dir, NULL, err);
	if (st)
		return st;
	while (!stage_child_poll(&child) && !stage_child_over(&child, 600, l->c->stop))
		clock_sleep_ns(clock_monotonic(), 20000000);
	stage_child_force(&child);
	if (!stage_child_release(&child, how, sizeof(how)))
		return STATUS_OK;
	return error_set(err, STATUS_UNAVAILABLE, "assay make-model ended with %s; %s/messages.txt says why",
			 how, dir);
}

enum status ladder_write_inputs(struct ladder *l, struct error *err)
{
	struct text text = {0};
	enum status st;

	config_write(&text, &l->base);
	st = ladder_write_text(l, "base.yaml", &text, err);
	text_release(&text);
	if (!st && !*l->plan.given)
		st = write_rows(l, "rows.jsonl", HELD_ROWS, STEP_ROWS * (l->plan.steps + 2), err);
	if (!st && !*l->plan.given)
		st = write_rows(l, "held-out.jsonl", 0, HELD_ROWS, err);
	return st || !*l->plan.shape ? st : make_model(l, err);
}
