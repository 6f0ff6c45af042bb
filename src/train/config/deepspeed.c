/* SPDX-License-Identifier: Apache-2.0 */
/* Reads those settings of a DeepSpeed configuration that describe the optimizer step. */
#include <math.h>
#include "train/config/settings.h"

static bool is_auto(const struct tree *t)
{
	return t && t->kind == TREE_SCALAR && !strcmp(t->text, "auto");
}

/* Sets the setting `ours` from DeepSpeed's `theirs`. If `ours` is also given, both values must be equal. */
static enum status take(struct config *c, const struct tree *t, const char *theirs, const char *ours,
			struct error *err)
{
	const struct opt_table *table = &config_section("training")->table;
	struct config_training other = c->training;
	size_t row = config_row(table, ours);
	char place[400], was[64], is[64];
	enum status st;

	if (!t || t->kind == TREE_NULL || is_auto(t))
		return STATUS_OK;
	snprintf(place, sizeof(place), "%.250s:%d: deepspeed: %s", t->file, t->line, theirs);
	if (t->kind != TREE_SCALAR)
		return error_set(err, STATUS_BAD_INPUT, "%s: expected a value", place);
	if (t->quoted && !table->rows[row].choices)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: expected a number, true or false, not a quoted "
				 "text",
				 place);
	st = opt_set(table, &other, ours, t->text, place, err);
	if (st)
		return st;
	opt_value_text(&table->rows[row], &c->training, was, sizeof(was));
	opt_value_text(&table->rows[row], &other, is, sizeof(is));
	if (config_given(c, "training", ours) && strcmp(was, is))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s is %s, but training: %s is %s; make them equal "
				 "or remove one",
				 place, is, ours, was);
	c->training = other;
	c->given[config_section("training") - config_sections][row] = t;
	return STATUS_OK;
}

/* Finds a sub-map. *out is NULL or an empty node if the map is not given. */
static enum status section(const struct tree **out, const struct tree *map, const char *name,
			   struct error *err)
{
	const struct tree *t = tree_get(map, name);

	*out = t;
	if (!t || t->kind == TREE_NULL || t->kind == TREE_MAP)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: deepspeed: %s: expected a map", t->file, t->line,
			 name);
}

/* train_batch_size covers all ranks. The number of ranks is not known here, so this checks only that it is a
 * multiple of one rank's batch. */
static enum status check_whole_batch(const struct config *c, const struct tree *map, struct error *err)
{
	const struct tree *t = tree_get(map, "train_batch_size");
	double whole = 0, step = (double)c->training.per_device_train_batch_size *
				 c->training.gradient_accumulation_steps;
	enum status st;

	if (!t || is_auto(t))
		return STATUS_OK;
	st = tree_f64_unit(map, "train_batch_size", "", &whole, err);
	if (!st && (whole < step || fmod(whole, step) != 0))
		st = error_set(err, STATUS_BAD_INPUT,
			       "%s:%d: deepspeed: train_batch_size %.15g is not a multiple of micro-batch "
			       "times accumulation, which is %.15g",
			       t->file, t->line, whole, step);
	return st;
}

static void name_ignored(struct config *c, const struct tree *map, const char *within,
			 const char *const *known)
{
	for (size_t i = 0; map && map->kind == TREE_MAP && i < map->count; i++) {
		bool taken = false;

		for (const char *const *k = known; *k; k++)
			taken = taken || !strcmp(*k, map->keys[i]);
		if (!taken)
			text_addf(&c->notes, "%s:%d: deepspeed: %s%s%s is not supported and is ignored\n",
				  map->file, map->items[i]->line, within, *within ? "." : "", map->keys[i]);
	}
}

enum status config_deepspeed(struct config *c, const struct tree *map, struct error *err)
{
	static const char *const known[] = {"zero_optimization",
					    "train_micro_batch_size_per_gpu",
					    "gradient_accumulation_steps",
					    "gradient_clipping",
					    "bf16",
					    "fp16",
					    "train_batch_size",
					    "communication_data_type",
					    NULL};
	static const char *const stage[] = {"stage", NULL}, *const enabled[] = {"enabled", NULL};
	const struct tree *zero, *bf16, *fp16;
	enum status st;

	if (map->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: deepspeed: expected a map", map->file,
				 map->line);
	st = section(&zero, map, "zero_optimization", err);
	if (!st)
		st = section(&bf16, map, "bf16", err);
	if (!st)
		st = section(&fp16, map, "fp16", err);
	if (st)
		return st;
	st = take(c, tree_get(zero, "stage"), "zero_optimization.stage", "zero_stage", err);
	if (!st)
		st = take(c, tree_get(zero, "mics_shard_size"), "zero_optimization.mics_shard_size",
			  "dp_shard_size", err);
	if (!st)
		st = take(c, tree_get(map, "train_micro_batch_size_per_gpu"),
			  "train_micro_batch_size_per_gpu", "per_device_train_batch_size", err);
	if (!st)
		st = take(c, tree_get(map, "gradient_accumulation_steps"), "gradient_accumulation_steps",
			  "gradient_accumulation_steps", err);
	if (!st)
		st = take(c, tree_get(map, "gradient_clipping"), "gradient_clipping", "max_grad_norm", err);
	if (!st)
		st = take(c, tree_get(map, "communication_data_type"), "communication_data_type",
			  "communication_data_type", err);
	if (!st)
		st = take(c, tree_get(bf16, "enabled"), "bf16.enabled", "bf16", err);
	if (!st)
		st = take(c, tree_get(fp16, "enabled"), "fp16.enabled", "fp16", err);
	name_ignored(c, map, "", known);
	name_ignored(c, zero, "zero_optimization", stage);
	name_ignored(c, bf16, "bf16", enabled);
	name_ignored(c, fp16, "fp16", enabled);
	return st ? st : check_whole_batch(c, map, err);
}
