/* SPDX-License-Identifier: Apache-2.0 */
#include "model/generation/inference.h"
#include <stdlib.h>
#include "model/cpu/cpu.h"
#include "model/files/peft/base.h"
#include "model/generation/generator.h"
#include "model/gpu/decode.h"
#include "model/gpu/backend.h"
#include "model/backend/plan_backend.h"
#include "vendor/cuda.h"

struct inference {
	struct weights weights;
	struct peft peft;
	struct model *model;
	struct backend back;
	struct arena arena;
	void *memory; /* memory of a CPU's arena */
	struct generator *generator;
	uint64_t at_once; /* tokens per launch */
};

static enum status place(struct inference *i, const struct inference_options *o, struct error *err)
{
	const struct model_options options = {
		.lora = o->adapter ? &i->peft.config : NULL,
		.inference = true,
		.positions = o->positions,
		/* quantized weights cannot be merged with an adapter, and a GPU's GEMMs do not support them
		 */
		.blocks = o->merge || i->back.kind == BACKEND_GPU ? NULL : &i->weights,
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

/* Plans the bytes for a prompt that fills all positions. */
static enum status plan(struct inference *i, const struct inference_options *o, bool gpu, size_t *size,
			struct error *err)
{
	int32_t *ids = calloc((size_t)o->positions, sizeof(*ids));
	const float *logits;
	enum status st;

	if (!ids)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %lld positions", (long long)o->positions);
	i->arena = (struct arena){0};
	if (gpu)
		plan_backend_gpu(&i->back, &i->arena);
	else
		plan_backend_cpu(&i->back, cpu_backend_threads(), &i->arena);
	st = place(i, o, err);
	if (!st)
		st = generator_feed(i->generator, ids, (size_t)o->positions, &logits, err);
	*size = i->arena.peak;
	take_down(i);
	free(ids);
	return st;
}

/* Loads the adapter's parameters from its files. */
static enum status load_flat(struct inference *i, const struct mat *flat, struct error *err)
{
	struct peft_slot *slots = NULL;
	struct named *names = NULL;
	size_t count = 0;
	enum status st = model_peft_slots(i->model, flat, &slots, &names, &count, err);

	if (!st)
		st = peft_load(&i->peft, slots, count, err);
	free(slots);
	free(names);
	return st;
}

static enum status load_flat_gpu(struct inference *i, struct error *err)
{
	const struct mat *master = &i->model->params.master;
	struct mat host = *master;
	enum status st;

	host.data = calloc(i->model->params.length, sizeof(float));
	if (!host.data)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the adapter's parameters");
	st = load_flat(i, &host, err);
	if (!st)
		st = i->back.ops->put(&i->back, *master, host.data, err);
	free(host.data);
	return st;
}

/* Replaces parts of the base model; a head trained separately from the tied embedding comes from the
 * adapter. */
static enum status load_adapter(struct inference *i, bool merge, struct error *err)
{
	enum status st = i->back.kind == BACKEND_GPU ? load_flat_gpu(i, err)
						     : load_flat(i, &i->model->params.master, err);

	if (!st)
		st = model_refresh(i->model, &i->back, err);
	return st || !merge ? st : model_merge(i->model, &i->back, err);
}

static enum status load(struct inference *i, const struct inference_options *o, struct error *err)
{
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	size_t count = 0;
	enum status st = model_weight_slots(i->model, &slots, &names, &count, err);

	if (!st)
		st = i->back.kind == BACKEND_GPU ? weights_load_to(&i->weights, &i->back, slots, count, err)
						 : weights_load(&i->weights, slots, count, err);
	if (!st)
		st = model_loaded(i->model, &i->back, err);
	if (!st && o->adapter)
		st = load_adapter(i, o->merge, err);
	free(slots);
	free(names);
	return st;
}

static enum status open_cpu(struct inference *i, const struct inference_options *o, struct error *err)
{
	const struct cpu_options options = {.threads = cpu_backend_threads()};
	size_t size = 0;
	enum status st = plan(i, o, false, &size, err);

	if (st)
		return st;
	if (posix_memalign(&i->memory, ARENA_ALIGN, size))
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: cannot allocate %.3g GB of memory", o->model,
				       (double)size * 1e-9);
	i->arena = (struct arena){.base = i->memory, .size = size};
	if (o->before_cpu)
		o->before_cpu(o->arg);
	return cpu_backend_create(&i->back, &options, &i->arena, err);
}

static void put_back(struct inference *i)
{
	if (i->back.kind == BACKEND_GPU)
		gpu_backend_release(&i->back);
	else if (i->memory)
		cpu_backend_release(&i->back);
	free(i->memory);
	i->memory = NULL;
	i->back = (struct backend){0};
}

static enum status open_gpu(struct inference *i, const struct inference_options *o, struct error *err)
{
	const struct gpu_backend_options options = {.attention = GPU_ATTENTION_OWN};
	struct error why = {0};
	size_t size = 0;
	enum status st = decode_check_heads(i->weights.shape.head_dim, err);

	if (!st)
		st = gpu_backend_takes(&i->weights.shape, err);
	if (!st)
		st = plan(i, o, true, &size, err);
	i->back = (struct backend){0};
	i->arena = (struct arena){0};
	if (!st)
		st = gpu_backend_create(&i->back, &options, &i->arena, err);
	if (st)
		return st;
	st = gpu_backend_take(&i->back, size, &why);
	if (st == STATUS_NO_RESOURCE)
		return error_set_cause(
			err, st, CAUSE_NO_MEMORY,
			"%s: the plan needs %.3g GB for weights, KV cache and work of %lld tokens: %s; "
			"reduce --tokens, or use --device cpu, which uses host memory",
			o->model, (double)size * 1e-9, (long long)o->positions, why.text);
	return st ? error_set_cause(err, st, why.cause, "%s", why.text) : STATUS_OK;
}

/* Without a driver, or if the GPUs are hidden on purpose, there is no warning. A driver that fails to start
 * causes one. */
static bool is_absent(const struct error *why)
{
	if (why->cause == CAUSE_NOT_GRANTED)
		return getenv("CUDA_VISIBLE_DEVICES");
	return why->cause == CAUSE_DRIVER_MISSING && !cuda_is_there();
}

static enum status open_device(struct inference *i, const struct inference_options *o, struct error *err)
{
	struct error why = {0};

	if (o->device == INFERENCE_CPU)
		return open_cpu(i, o, err);
	if (o->device == INFERENCE_GPU)
		return open_gpu(i, o, err);
	if (!open_gpu(i, o, &why))
		return STATUS_OK;
	put_back(i);
	if (o->log && !is_absent(&why))
		log_warn(o->log, LOG_TOPIC_RUN, "running on the CPU (--device gpu would fail): %s", why.text);
	return open_cpu(i, o, err);
}

static enum status open_all(struct inference *i, const struct inference_options *o, struct error *err)
{
	enum status st = weights_open(&i->weights, o->model, err);

	if (!st && o->adapter)
		st = peft_open(&i->peft, o->adapter, &i->weights.shape, err);
	if (!st && o->adapter)
		st = peft_check_base(&i->peft, &i->weights, o->any_base, o->log, err);
	if (!st && i->peft.config.dora)
		st = error_set(err, STATUS_UNSUPPORTED, "%s: use_dora is not supported here", o->adapter);
	if (!st)
		st = open_device(i, o, err);
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
	put_back(i);
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

uint64_t inference_at_once(const struct inference *i)
{
	return i->at_once;
}

struct inference_facts inference_facts(const struct inference *i)
{
	const struct shape *s = &i->weights.shape;
	const bool gpu = i->back.kind == BACKEND_GPU;
	const double read = (double)(shape_parameters(s) - (s->tied ? 0 : s->vocab * s->hidden));

	return (struct inference_facts){
		.device = gpu ? gpu_name(gpu_backend_device(&i->back)) : "cpu",
		.gpu = gpu,
		.weight_bytes = gpu ? 2 * read : 0,
		.memory_rate = gpu ? gpu_dram_rate(gpu_backend_device(&i->back)) : 0,
	};
}

enum status inference_generate(struct inference *i, const int32_t *prompt, size_t count,
			       const struct inference_ask *ask,
			       bool (*take)(void *arg, int32_t id, const float *logits), void *arg,
			       bool *stopped, struct error *err)
{
	const struct generate_options options = {.sampling = ask->sampling,
						 .tokens = ask->tokens,
						 .vocab = ask->vocab,
						 .stop = ask->stop,
						 .stops = ask->stops,
						 .logits = ask->logits,
						 .cancel = ask->cancel};
	enum generate_end end;
	struct error why = {0};
	enum status st;

	i->at_once = generate_at_once(i->generator, &options);
	generator_rewind(i->generator, 0); /* prompts are independent */
	st = generate(i->generator, prompt, count, &options, take, arg, &end, &why);
	if (st && i->back.kind == BACKEND_GPU && (st == STATUS_VENDOR || st == STATUS_LOST))
		error_set_cause(err, st, why.cause, "%s: %s", gpu_name(gpu_backend_device(&i->back)),
				why.text);
	else if (st)
		error_set_cause(err, st, why.cause, "%s", why.text);
	*stopped = end == GENERATE_STOPPED;
	return st;
}
