/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/load/load.h"
#include <stdlib.h>
#include <unistd.h>
#include "engine/load/choose.h"
#include "model/backend/plan_backend.h"
#include "model/cpu/cpu.h"
#include "model/gpu/backend.h"
#include "model/model.h"
#include "core/text/text.h"
#include "vendor/cuda.h"

enum { OUTPUTS_LEAST = 64 };
static const double memory_share_gpu = 0.9, memory_share_cpu = 0.5;

static int64_t or_default(int64_t value, int64_t preset)
{
	return value ? value : preset;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The limits of a step on a device of this kind. */
static void set_limits(struct loaded *l, const struct load_options *o, bool gpu)
{
	const int64_t page = or_default(o->page_tokens, LOAD_PAGE_TOKENS), vocab = l->weights.shape.vocab;
	const int64_t sequences = or_default(o->sequences, gpu ? LOAD_SEQUENCES_GPU : LOAD_SEQUENCES_CPU);
	const int64_t context = l->weights.shape.context;

	l->positions =
		or_default(o->positions, o->positions_most ? least(o->positions_most, context) : context);

	l->most = (struct paged_limits){
		.rows = or_default(o->rows, gpu ? LOAD_ROWS_GPU : LOAD_ROWS_CPU),
		.sequences = sequences,
		.outputs = or_default(o->outputs,
				      sequences + page > OUTPUTS_LEAST ? sequences + page : OUTPUTS_LEAST),
		.pages = (l->positions + page - 1) / page,
		.vocab = least(or_default(o->vocab, vocab), vocab),
		.page_tokens = (int32_t)page,
		/* attention has no tiles in deterministic mode, and only tiles read a copy */
		.copies = gpu && l->copies && !o->deterministic,
	};
	/* the scheduler plans a page of prefill next to a row of every sequence */
	if (l->most.rows < sequences + page)
		l->most.rows = sequences + page;
}

static struct paged_step_options step_options(const struct loaded *l, const struct load_options *o)
{
	return (struct paged_step_options){
		.most = l->most,
		.places = l->most.sequences,
		.cache_e4m3 = o->cache_e4m3,
		.counts = o->penalties,
		.replays = l->back.kind == BACKEND_GPU,
		.deterministic = o->deterministic,
	};
}

static struct adapters_options adapters_options(const struct load_options *o)
{
	return (struct adapters_options){
		.dir = o->adapter, .merge = o->merge, .any_base = o->any_base, .log = o->log};
}

/* Everything of the model and the step except pages. */
static enum status place(struct loaded *l, const struct load_options *o, struct error *err)
{
	const bool gpu = l->back.kind == BACKEND_GPU;
	const struct model_options options = {
		.lora = adapters_config(&l->adapters),
		.owners = l->adapters.count,
		.inference = true,
		.storage.form = o->weights_e4m3 ? STORAGE_E4M3_ROWS : STORAGE_NUMBERS,
		.positions = l->positions,
		/* quantized weights cannot be merged with an adapter, and a GPU's GEMMs do not support them
		 */
		.blocks = l->adapters.merge || o->weights_f32 || gpu ? NULL : &l->weights,
	};
	const struct paged_step_options step = step_options(l, o);
	enum status st = model_create(&l->model, &l->weights.shape, &options, err);

	if (!st)
		st = model_place(l->model, &l->back, err);
	return st ? st : paged_step_create(&l->step, l->model, &l->back, &step, err);
}

static void take_down(struct loaded *l)
{
	paged_step_release(&l->step);
	model_release(l->model);
	l->model = NULL;
}

/* Runs the largest step in the plan, so that the workspace of its operations is counted. Each sequence has as
 * many rows as its pages hold; what is left are padding rows. */
static enum status plan_step(struct loaded *l, struct error *err)
{
	const int64_t each = least(l->most.rows, l->most.pages * l->most.page_tokens);
	const int64_t sequences = least(l->most.rows / each, l->most.sequences);
	int32_t *begin = calloc((size_t)sequences + 1, sizeof(*begin));
	int32_t *keys = calloc((size_t)sequences, sizeof(*keys));
	const struct paged_rows step = {
		.begin = begin,
		.keys = keys,
		.rows = l->most.rows,
		.sequences = sequences,
		.outputs = l->most.outputs,
		.page_ld = l->most.pages,
		.keys_most = least(l->positions, INT32_MAX),
		.page_tokens = l->most.page_tokens,
		.adapted = true,
	};
	const struct sample_lists lists = {.rows = l->most.outputs};
	int turn;
	enum status st = begin && keys ? STATUS_OK
				       : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
							 "no memory for the lists of a planned step");

	for (int64_t i = 0; !st && i < sequences; i++) {
		begin[i + 1] = (int32_t)((i + 1) * each);
		keys[i] = (int32_t)step.keys_most;
	}
	if (!st)
		st = paged_step_forward(l->step, &step, err);
	if (!st)
		st = paged_step_sample(l->step, &lists, &turn, err);
	free(begin);
	free(keys);
	return st;
}

static enum status plan_once(struct loaded *l, const struct load_options *o, int64_t pages, struct error *err)
{
	enum status st;

	l->arena = (struct arena){0};
	st = place(l, o, err);
	if (!st)
		st = paged_step_pages(l->step, pages, err);
	if (!st)
		st = plan_step(l, err);
	return st;
}

static uint64_t host_memory(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}

/* Pages besides page 0 that all sequences can fill. */
static int64_t pages_most(const struct loaded *l)
{
	return l->most.pages * l->most.sequences;
}

static enum status too_small(const struct loaded *l, const struct load_options *o, uint64_t memory,
			     uint64_t needed, struct error *err)
{
	return error_set_cause(
		err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
		"%s: %s %.3g GB, but weights, working memory and the KV cache of one sequence of %lld tokens need "
		"%.3g GB; %s",
		o->model, o->memory ? "--memory is" : "the memory available is", (double)memory * 1e-9,
		(long long)l->positions, (double)needed * 1e-9,
		o->memory ? "raise --memory or reduce --context" : "reduce the context length");
}

/* Plans with the back end that l->back is, and sets l->pages. */
static enum status plan(struct loaded *l, const struct load_options *o, uint64_t memory,
			struct load_plan *out, struct error *err)
{
	const struct adapters_options adapters = adapters_options(o);
	const bool gpu = l->back.kind == BACKEND_GPU;
	enum status st;

	adapters_plan(&l->adapters, &adapters, &l->weights, gpu);
	set_limits(l, o, gpu);
	st = plan_once(l, o, 1, err);
	if (!st) {
		const struct paged_step_options step = step_options(l, o);

		out->page_bytes = paged_step_page_bytes(l->model, &l->back, &step);
		l->pages = o->pages;
		if (!l->pages && memory > l->arena.peak)
			l->pages =
				least((int64_t)((memory - l->arena.peak) / out->page_bytes), pages_most(l));
		if (l->pages < l->most.pages)
			st = too_small(l, o, memory,
				       l->arena.peak + (uint64_t)l->most.pages * out->page_bytes, err);
	}
	take_down(l);
	if (!st)
		st = plan_once(l, o, l->pages + 1, err);
	out->bytes = l->arena.peak;
	for (int i = 0; i < MEM_KINDS; i++) {
		out->kind[i] = l->arena.kind_at_peak[i];
		out->kind_peak[i] = l->arena.kind_peak[i];
	}
	out->pages = l->pages;
	out->page_tokens = l->most.page_tokens;
	out->sequences = l->most.sequences;
	out->positions = l->positions;
	take_down(l);
	return st;
}

static enum status plan_cpu(struct loaded *l, const struct load_options *o, struct load_plan *out,
			    struct error *err)
{
	const uint64_t memory = o->memory ? o->memory : (uint64_t)((double)host_memory() * memory_share_cpu);

	if (o->weights_e4m3)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"%s: FP8 weights need a GPU of the Hopper generation (sm_90), and this plan is for the "
			"CPU; leave out --weights fp8",
			o->model);
	plan_backend_cpu(&l->back, cpu_backend_threads(), &l->arena);
	l->back.invariant = true;
	return plan(l, o, memory, out, err);
}

static enum status plan_gpu(struct loaded *l, const struct load_options *o, uint64_t memory,
			    struct load_plan *out, struct error *err)
{
	enum status st = gpu_backend_takes(&l->weights.shape, err);

	plan_backend_gpu(&l->back, DTYPE_BF16, &l->arena);
	return st ? st : plan(l, o, memory, out, err);
}

static enum status load_weights(struct loaded *l, struct error *err)
{
	const struct model_source from = {.weights = &l->weights};
	enum status st = model_load(l->model, &l->back, &from, err);

	if (!st)
		st = model_loaded(l->model, &l->back, err);
	if (!st && l->adapters.count)
		st = adapters_load(&l->adapters, l->model, &l->back, &l->weights, err);
	return st;
}

static enum status open_cpu(struct loaded *l, const struct load_options *o, struct error *err)
{
	const struct cpu_options options = {.threads = cpu_backend_threads(), .invariant = true};
	enum status st = plan_cpu(l, o, &l->planned, err);

	if (st)
		return st;
	l->memory = cpu_memory(l->planned.bytes);
	if (!l->memory)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: cannot allocate %.3g GB of memory", o->model,
				       (double)l->planned.bytes * 1e-9);
	l->arena = (struct arena){.base = l->memory, .size = l->planned.bytes};
	if (o->before_cpu)
		o->before_cpu(o->arg);
	return cpu_backend_create(&l->back, &options, &l->arena, err);
}

static void close_device(struct loaded *l)
{
	if (l->back.kind == BACKEND_GPU)
		gpu_backend_release(&l->back);
	else if (l->memory)
		cpu_backend_release(&l->back);
	free(l->memory);
	l->memory = NULL;
	l->back = (struct backend){0};
}

/* Plans for the GPU that l->back is, which stays. */
static enum status plan_opened(struct loaded *l, const struct load_options *o, struct load_plan *out,
			       struct error *err)
{
	struct backend device = l->back;
	uint64_t memory = o->memory;
	enum status st;

	l->copies = gpu_backend_copies_pages(&l->back);
	if (!memory)
		memory = (uint64_t)((double)gpu_memory_usable(gpu_backend_device(&l->back)) *
				    memory_share_gpu);
	st = plan_gpu(l, o, memory, out, err);
	l->back = device;
	l->arena = (struct arena){0};
	return st;
}

static enum status take_gpu(struct loaded *l, const struct load_options *o, struct error *err)
{
	struct error why = {0};
	enum status st = plan_opened(l, o, &l->planned, err);

	if (st)
		return st;
	st = gpu_backend_take(&l->back, l->planned.bytes, &why);
	if (st == STATUS_NO_RESOURCE)
		return error_set_cause(
			err, st, CAUSE_NO_MEMORY,
			"%s: the plan needs %.3g GB for weights, KV cache and work of %lld tokens: %s; "
			"reduce the context length, or use --device cpu, which uses host memory",
			o->model, (double)l->planned.bytes * 1e-9, (long long)l->positions, why.text);
	return st ? error_set_cause(err, st, why.cause, "%s", why.text) : STATUS_OK;
}

static enum gpu_adapters gpu_adapters_of(enum load_adapters adapters)
{
	switch (adapters) {
	case LOAD_ADAPTERS_APART:
		return GPU_ADAPTERS_APART;
	case LOAD_ADAPTERS_CHOSEN:
		return GPU_ADAPTERS_CHOSEN;
	case LOAD_ADAPTERS_FUSED:
		return GPU_ADAPTERS_FUSED;
	}
	return GPU_ADAPTERS_APART;
}

static enum status create_gpu(struct loaded *l, const struct load_options *o, struct error *err)
{
	const struct gpu_backend_options options = {.attention = GPU_ATTENTION_OWN,
						    .deterministic = o->deterministic,
						    .graphs = true,
						    .few_rows = !o->library_gemm,
						    .adapters = gpu_adapters_of(o->adapters),
						    .invariant = o->deterministic};
	enum status st = gpu_backend_takes(&l->weights.shape, err);

	l->back = (struct backend){0};
	l->arena = (struct arena){0};
	return st ? st : gpu_backend_create(&l->back, &options, &l->arena, err);
}

static enum status open_gpu(struct loaded *l, const struct load_options *o, struct error *err)
{
	enum status st = create_gpu(l, o, err);

	return st ? st : take_gpu(l, o, err);
}

/* Without a driver, or if the GPUs are hidden on purpose, there is no warning. A driver that fails to start
 * causes one. */
static bool is_absent(const struct error *why)
{
	if (why->cause == CAUSE_NOT_GRANTED)
		return getenv("CUDA_VISIBLE_DEVICES");
	return why->cause == CAUSE_DRIVER_MISSING && !cuda_is_there();
}

static void tell_fallback(const struct load_options *o, const struct error *why)
{
	if (o->log && !is_absent(why))
		log_warn(o->log, LOG_TOPIC_RUN, "running on the CPU (--device gpu would fail): %s",
			 why->text);
}

static enum status open_device(struct loaded *l, const struct load_options *o, struct error *err)
{
	struct error why = {0};

	if (o->device == LOAD_CPU)
		return open_cpu(l, o, err);
	if (o->device == LOAD_GPU)
		return open_gpu(l, o, err);
	if (!open_gpu(l, o, &why))
		return STATUS_OK;
	close_device(l);
	tell_fallback(o, &why);
	return open_cpu(l, o, err);
}

static enum status open_files(struct loaded *l, const struct load_options *o, struct error *err)
{
	enum status st = weights_open(&l->weights, o->model, err);
	const struct adapters_options adapters = adapters_options(o);

	return st ? st : adapters_open(&l->adapters, &adapters, &l->weights, err);
}

static enum status plan_for_cpu(struct loaded *l, const struct load_options *o, struct load_plan *out,
				struct error *err)
{
	enum status st = plan_cpu(l, o, out, err);

	l->back = (struct backend){0};
	text_copy(out->device, sizeof(out->device), "cpu");
	return st;
}

/* A GPU of the stated memory, which need not be there. */
static enum status plan_for_stated(struct loaded *l, const struct load_options *o, struct load_plan *out,
				   struct error *err)
{
	enum status st;

	l->copies = true;
	st = plan_gpu(l, o, o->memory, out, err);
	l->back = (struct backend){0};
	text_copy(out->device, sizeof(out->device), "gpu");
	return st;
}

/* The GPU that is there. */
static enum status plan_for_gpu(struct loaded *l, const struct load_options *o, struct load_plan *out,
				struct error *err)
{
	enum status st = create_gpu(l, o, err);

	if (!st)
		st = plan_opened(l, o, out, err);
	if (!st)
		text_copy(out->device, sizeof(out->device), gpu_name(gpu_backend_device(&l->back)));
	close_device(l);
	return st;
}

static enum status plan_device(struct loaded *l, const struct load_options *o, struct load_plan *out,
			       struct error *err)
{
	struct error why = {0};

	if (o->device == LOAD_CPU)
		return plan_for_cpu(l, o, out, err);
	if (o->device == LOAD_GPU)
		return o->memory ? plan_for_stated(l, o, out, err) : plan_for_gpu(l, o, out, err);
	if (!plan_for_gpu(l, o, out, &why))
		return STATUS_OK;
	tell_fallback(o, &why);
	return plan_for_cpu(l, o, out, err);
}

enum status load_plan(struct load_plan *out, const struct load_options *o, struct error *err)
{
	struct loaded l = {0};
	enum status st = open_files(&l, o, err);

	*out = (struct load_plan){0};
	if (!st)
		st = plan_device(&l, o, out, err);
	load_close(&l);
	return st;
}

enum status load_open(struct loaded *l, const struct load_options *o, struct error *err)
{
	enum status st;

	*l = (struct loaded){0};
	st = open_files(l, o, err);
	if (!st)
		st = open_device(l, o, err);
	if (!st)
		st = place(l, o, err);
	if (!st)
		st = paged_step_pages(l->step, l->pages + 1, err);
	if (!st)
		st = load_weights(l, err);
	if (st || o->no_tuning || l->back.kind != BACKEND_GPU)
		return st;
	return o->deterministic ? load_deterministic_cost(l, &l->deterministic_cost, err)
				: load_choose(l, (l->model->owners > 1 ? 2 : 1) * LOAD_CHOOSE_S, err);
}

void load_close(struct loaded *l)
{
	take_down(l);
	close_device(l);
	adapters_release(&l->adapters);
	weights_release(&l->weights);
	*l = (struct loaded){0};
}

struct load_facts load_facts(const struct loaded *l)
{
	const struct shape *s = &l->weights.shape;
	const bool gpu = l->back.kind == BACKEND_GPU;
	const double read = (double)(shape_parameters(s) - (s->tied ? 0 : s->vocab * s->hidden));

	return (struct load_facts){
		.device = gpu ? gpu_name(gpu_backend_device(&l->back)) : "cpu",
		.gpu = gpu,
		.shared = gpu && gpu_backend_is_shared(&l->back),
		.weight_bytes = gpu ? 2 * read : 0,
		.memory_rate = gpu ? gpu_dram_rate(gpu_backend_device(&l->back)) : 0,
	};
}
