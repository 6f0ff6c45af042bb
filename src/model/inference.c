/* SPDX-License-Identifier: Apache-2.0 */
#include "model/inference.h"
#include <stdlib.h>
#include "model/cpu/cpu.h"
#include "model/files/peft_base.h"
#include "model/generate.h"
#include "model/plan.h"

struct inference {
	struct weights weights;
	struct peft peft;
	struct model *model;
	struct back back;
	struct arena arena;
	void *memory;
	struct generator *generator;
};

static enum status place(struct inference *i, const struct inference_options *o, struct error *err)
{
	const struct model_options options = {
		.lora = o->adapter ? &i->peft.config : NULL,
		.inference = true,
		.positions = o->positions,
		.blocks = o->merge ? NULL : &i->weights, /* numbers alone can be added to */
	};
	enum status st = model_create(&i->model, &i->weights.shape, &options, err);

	if (!st)
		st = model_place(i->model, &i->back, err);
	return st ? st : generator_create(&i->generator, i->model, &i->back, o->positions, err);
}

static void take_down(struct inference *i)
{
	generator_release(&i->generator);
	model_release(i->model);
	i->model = NULL;
}

/* As many bytes as a prompt that fills all positions needs. */
static enum status plan(struct inference *i, const struct inference_options *o, size_t *size,
			struct error *err)
{
	int32_t *ids = calloc((size_t)o->positions, sizeof(*ids));
	const float *logits;
	enum status st;

	if (!ids)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %lld positions", (long long)o->positions);
	plan_back_cpu(&i->back, cpu_back_threads(), &i->arena);
	st = place(i, o, err);
	if (!st)
		st = generator_feed(i->generator, ids, (size_t)o->positions, &logits, err);
	*size = i->arena.peak;
	take_down(i);
	free(ids);
	return st;
}

/* Over what the base model has: a head that was trained apart from the tied embedding is the adapter's. */
static enum status load_adapter(struct inference *i, bool merge, struct error *err)
{
	struct peft_slot *slots = NULL;
	struct named *names = NULL;
	size_t count = 0;
	enum status st = model_peft_slots(i->model, &i->model->params.master, &slots, &names, &count, err);

	if (!st)
		st = peft_load(&i->peft, slots, count, err);
	if (!st)
		st = model_refresh(i->model, &i->back, err);
	if (!st && merge)
		st = model_merge(i->model, &i->back, err);
	free(slots);
	free(names);
	return st;
}

static enum status load(struct inference *i, const struct inference_options *o, struct error *err)
{
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	size_t count = 0;
	enum status st = model_weight_slots(i->model, &slots, &names, &count, err);

	if (!st)
		st = weights_load(&i->weights, slots, count, err);
	if (!st)
		st = model_loaded(i->model, &i->back, err);
	if (!st && o->adapter)
		st = load_adapter(i, o->merge, err);
	free(slots);
	free(names);
	return st;
}

static enum status open_all(struct inference *i, const struct inference_options *o, struct error *err)
{
	const struct cpu_options options = {.threads = cpu_back_threads()};
	size_t size = 0;
	enum status st = weights_open(&i->weights, o->model, err);

	if (!st && o->adapter)
		st = peft_open(&i->peft, o->adapter, &i->weights.shape, err);
	if (!st && o->adapter)
		st = peft_check_base(&i->peft, &i->weights, o->any_base, o->log, err);
	if (!st)
		st = plan(i, o, &size, err);
	if (st)
		return st;
	if (posix_memalign(&i->memory, ARENA_ALIGN, size))
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: %.3g GB of memory cannot be had", o->model, (double)size * 1e-9);
	i->arena = (struct arena){.base = i->memory, .size = size};
	st = cpu_back_create(&i->back, &options, &i->arena, err);
	if (!st)
		st = place(i, o, err);
	return st ? st : load(i, o, err);
}

enum status inference_open(struct inference **out, const struct inference_options *o, struct error *err)
{
	struct inference *i = calloc(1, sizeof(*i));
	enum status st;

	*out = i;
	if (!i)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a model");
	st = open_all(i, o, err);
	if (st)
		inference_close(out);
	return st;
}

void inference_close(struct inference **out)
{
	struct inference *i = *out;

	if (!i)
		return;
	take_down(i);
	if (i->memory)
		cpu_back_release(&i->back);
	free(i->memory);
	peft_release(&i->peft);
	weights_release(&i->weights);
	free(i);
	*out = NULL;
}

int64_t inference_vocab(const struct inference *i)
{
	return i->weights.shape.vocab;
}

int64_t inference_context(const struct inference *i)
{
	return i->weights.shape.context;
}

enum status inference_speak(struct inference *i, const int32_t *prompt, size_t count,
			    const struct inference_ask *ask,
			    bool (*take)(void *arg, int32_t id, const float *logits), void *arg,
			    bool *stopped, struct error *err)
{
	const struct generate_options options = {.sampling = ask->sampling,
						 .tokens = ask->tokens,
						 .vocab = ask->vocab,
						 .stop = ask->stop,
						 .stops = ask->stops};
	enum generate_end end;
	enum status st;

	generator_rewind(i->generator, 0); /* each prompt stands for itself */
	st = generate(i->generator, prompt, count, &options, take, arg, &end, err);

	*stopped = end == GENERATE_STOPPED;
	return st;
}
