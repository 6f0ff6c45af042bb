/* SPDX-License-Identifier: Apache-2.0 */
#include "train/plan.h"
#include "core/units.h"
#include "train/step.h"

static json_t *memory_json(const struct arena *a)
{
	json_t *kinds = json_object();

	for (int i = 0; i < MEM_KINDS; i++)
		if (a->kind_at_peak[i])
			json_object_set_new(kinds, memory_kind_name((enum memory_kind)i),
					    json_integer((json_int_t)a->kind_at_peak[i]));
	return kinds;
}

static json_t *as_json(const struct stepper *s, const struct shape *shape, const struct config *c)
{
	struct step_size size = stepper_size(c);
	double tokens = (double)size.tokens;

	return json_pack("{s:I, s:I, s:I, s:I, s:i, s:f, s:f, s:f, s:I, s:o}", "parameters",
			 (json_int_t)shape_parameters(shape), "trained", (json_int_t)s->model->params.length,
			 "micro_batch_tokens", (json_int_t)size.tokens, "step_tokens",
			 (json_int_t)(size.tokens * c->training.gradient_accumulation_steps), "threads",
			 s->back.threads, "forward_flop_per_token", s->forward.flop / tokens,
			 "backward_flop_per_token", s->backward.flop / tokens, "flop_per_token",
			 (s->forward.flop + s->backward.flop) / tokens, "memory_bytes",
			 (json_int_t)s->arena.peak, "memory", memory_json(&s->arena));
}

static void add_line(struct text *out, const char *what, double value, const char *unit, const char *note)
{
	char number[32];

	units_format(number, sizeof(number), value, unit);
	text_addf(out, "  %-12s %12s  %s\n", what, number, note);
}

static void as_text(struct text *out, const struct stepper *s, const struct shape *shape,
		    const struct config *c)
{
	struct step_size size = stepper_size(c);
	double tokens = (double)size.tokens;

	text_addf(out, "%lld of %lld parameters are trained\n", (long long)s->model->params.length,
		  (long long)shape_parameters(shape));
	text_addf(out, "a micro-batch: %lld tokens at most, rows of %lld; %u of them a step\n\n",
		  (long long)size.tokens, (long long)size.row_tokens,
		  c->training.gradient_accumulation_steps);
	text_add(out, "memory\n");
	for (int i = 0; i < MEM_KINDS; i++)
		if (s->arena.kind_at_peak[i])
			add_line(out, memory_kind_name((enum memory_kind)i), (double)s->arena.kind_at_peak[i],
				 "B", memory_kind_text((enum memory_kind)i));
	add_line(out, "in all", (double)s->arena.peak, "B", "one block, placed before the first step");
	text_add(out, "\nwork a token, where every token is a target\n");
	add_line(out, "forward", s->forward.flop / tokens, "FLOP", "");
	add_line(out, "backward", s->backward.flop / tokens, "FLOP", "head and loss, and what is made again");
}

enum status train_plan(const struct config *c, struct text *out, json_t **json, struct error *err)
{
	struct weights w = {0};
	struct stepper s = {0};
	enum status st = weights_open(&w, c->model.name_or_path, err);

	if (!st)
		st = stepper_plan(&s, &w.shape, c, cpu_back_threads(), err);
	if (!st && json)
		*json = as_json(&s, &w.shape, c);
	if (!st && json && !*json)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a plan");
	if (!st && out)
		as_text(out, &s, &w.shape, c);
	stepper_release(&s);
	weights_release(&w);
	return st;
}
