/* SPDX-License-Identifier: Apache-2.0 */
/* Engine `cudnn` of probe attention: plans of gpu/sdpa. The first heuristic is the one that cuDNN's frontend
 * runs. */
#include "gpu/sdpa/sdpa.h"
#include "probe/attention/device.h"
#include "probe/shared/candidates.h"

enum {
	TOP = 16,	  /* number of heuristics that search=top requests */
	EXHAUSTIVE = 256, /* largest number of candidates of search=exhaustive */
};

struct attention_cudnn {
	struct attention_device device;
	struct sdpa *sdpa;
	struct sdpa_plan *plan;	   /* the timed plan */
	struct sdpa_plan *forward; /* backward: the plan that makes its inputs */
	char name[128];
};

/* Checks the limits of every version of the library; the library itself reports the others in prepare. */
static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct attention_opts *o = opts;
	const struct gpu *g = machine_gpu(m, t->gpu[0]);
	const struct lib_found *lib = machine_lib(m, "cudnn");
	double cc = g ? gpu_get(g, GPU_FACT_cc, 0) : 0;

	if (attention_device_check_options(o, err))
		return STATUS_UNSUPPORTED;
	if (lib && lib->status)
		return error_set_cause(err, lib->status, lib->cause, "attention: cuDNN: %s", lib->missing);
	if (o->pattern != ATTENTION_LISTS_NONE)
		return attention_device_refuse(err,
					       "cuDNN does not support block lists on GPUs before sm_100");
	if (o->type == ATTENTION_E4M3 && cc > 0 && cc < 90)
		return attention_device_refuse(err, "cuDNN supports FP8 only on sm_90 or newer");
	return STATUS_OK;
}

static enum status attend(struct attention_device *s, const struct attention_operands *o, struct error *err)
{
	struct attention_cudnn *c = (struct attention_cudnn *)s;

	return sdpa_plan_enqueue(c->forward ? c->forward : c->plan, o, NULL, s->stream, err);
}

static enum status differentiate(struct attention_device *s, const struct attention_operands *o,
				 const struct sdpa_gradients *g, struct error *err)
{
	return sdpa_plan_enqueue(((struct attention_cudnn *)s)->plan, o, g, s->stream, err);
}

static enum status make_plans(struct attention_cudnn *s, struct error *err)
{
	const struct attention_case *c = &s->device.common.c;
	enum status st = sdpa_plan_create(&s->plan, s->sdpa, &c->problem,
					  c->backward ? SDPA_BACKWARD : SDPA_FORWARD, err);

	if (st || !c->backward)
		return st;
	s->device.differentiate = differentiate;
	st = sdpa_plan_create(&s->forward, s->sdpa, &c->problem, SDPA_FORWARD, err);
	return st ? st : sdpa_plan_first(s->forward, err);
}

static enum status find_candidates(struct attention_cudnn *s, const struct bench *b,
				   enum attention_search search, struct error *err)
{
	struct candidates_listing l = {.bench = b, .t0_ns = clock_now_ns(b->clock)};
	const struct sdpa_pace pace = {candidates_continue, &l};
	enum status st = search == ATTENTION_SEARCH_FIRST ? sdpa_plan_first(s->plan, err)
							  : sdpa_plan_candidates(s->plan, TOP, err);

	if (st || search != ATTENTION_SEARCH_EXHAUSTIVE)
		return st;
	st = sdpa_plan_exhaust(s->plan, EXHAUSTIVE, &pace, err);
	result_f64(b->out, &field_listing_s, (double)(clock_now_ns(b->clock) - l.t0_ns) * 1e-9);
	return st;
}

static void report(const struct attention_cudnn *s, struct result *out)
{
	int version = sdpa_version(s->sdpa);
	struct sdpa_description d;
	char text[512];

	sdpa_plan_describe(s->plan, 0, &d);
	snprintf(text, sizeof(text), "cuDNN %d.%d.%d %s", version / 10000, version / 100 % 100, version % 100,
		 sdpa_path(s->sdpa));
	result_text(out, &attention_fields[ATTENTION_FIELD_library], text);
	result_text(out, &attention_fields[ATTENTION_FIELD_kernel], d.name);
	result_u64(out, &attention_fields[ATTENTION_FIELD_workspace_bytes], d.workspace_bytes);
	attention_report(&s->device.common, out);
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct attention_cudnn *s = state;
	const struct attention_opts *o = opts;
	enum status st = attention_device_begin(&s->device, b, o, attend, err);

	if (!st)
		st = sdpa_open(&s->sdpa, b->device, NULL, 0, err);
	if (!st)
		st = make_plans(s, err);
	if (!st)
		st = find_candidates(s, b, (enum attention_search)o->search, err);
	if (!st)
		st = attention_device_fill(&s->device, err);
	if (!st && b->out)
		report(s, b->out);
	return st;
}

static unsigned variants(void *state)
{
	return sdpa_plan_count(((struct attention_cudnn *)state)->plan);
}

static enum status select_variant(void *state, unsigned variant, const char **name, struct error *err)
{
	struct attention_cudnn *s = state;
	struct sdpa_description d;
	enum status st = sdpa_plan_select(s->plan, variant, err);

	if (st)
		return st;
	sdpa_plan_describe(s->plan, variant, &d);
	memcpy(s->name, d.name, sizeof(s->name));
	*name = s->name;
	s->device.common.exact_done = false; /* each variant is verified completely */
	return STATUS_OK;
}

static void release(void *state)
{
	struct attention_cudnn *s = state;

	attention_device_end(&s->device);
	sdpa_plan_destroy(&s->forward);
	sdpa_plan_destroy(&s->plan);
	sdpa_close(&s->sdpa);
}

const struct engine attention_cudnn_engine = {
	.name = "cudnn",
	.libs = "cudnn cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.state_size = sizeof(struct attention_cudnn),
	.supports = supports,
	.prepare = prepare,
	.enqueue = attention_device_enqueue,
	.variants = variants,
	.select = select_variant,
	.release = release,
};
