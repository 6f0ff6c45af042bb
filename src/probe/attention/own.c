/* SPDX-License-Identifier: Apache-2.0 */
/* Engine `own` of probe attention: this program's dense kernels, forward (gpu/attention/own_forward.h) and
 * backward (gpu/attention/own_backward.h). Backward reads the output of forward. The search also times the
 * earlier versions of the best kernel. */
#include "gpu/attention/own_forward.h"
#include "gpu/attention/own_backward.h"
#include "probe/attention/device.h"

struct attention_own_engine {
	struct attention_device device;
	struct attention_own *own;
	struct attention_own_backward *backward; /* pass=backward: the timed kernels */
	gpu_ptr workspace;			 /* enough for the variant that needs the most */
	enum attention_search search;
};

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct attention_opts *o = opts;
	const struct gpu *g = machine_gpu(m, t->gpu[0]);
	double cc = g ? gpu_get(g, GPU_FACT_cc, 0) : 0;
	struct attention_case c;
	enum status st = attention_device_check_options(o, err);

	if (!st && o->pattern != ATTENTION_LISTS_NONE)
		st = attention_device_refuse(err,
					     "engine own does not support block lists; use engine sparse");
	if (!st)
		st = attention_case_describe(&c, o, err);
	if (st)
		return st;
	if (cc > 0)
		st = attention_own_supports(&c.problem, (unsigned)cc, err);
	if (!st && cc > 0 && c.backward)
		st = attention_own_backward_supports(&c.problem, (unsigned)cc, err);
	attention_case_release(&c);
	return st;
}

static enum status attend(struct attention_device *s, const struct attention_operands *o, struct error *err)
{
	return attention_own_enqueue(((struct attention_own_engine *)s)->own, o, s->stream, err);
}

static enum status differentiate(struct attention_device *s, const struct attention_operands *o,
				 const struct sdpa_gradients *g, struct error *err)
{
	const struct attention_own_engine *e = (struct attention_own_engine *)s;

	return attention_own_backward_enqueue(e->backward, o, g, e->workspace, s->stream, err);
}

static enum status make_backward(struct attention_own_engine *s, struct gpu_device *d, struct error *err)
{
	enum status st =
		attention_own_backward_create(&s->backward, d, &s->device.common.c.problem, false, err);
	uint64_t most = 0;

	for (unsigned i = 0; !st && i < attention_own_backward_count(s->backward); i++) {
		uint64_t bytes = attention_own_backward_workspace(s->backward, i);

		most = bytes > most ? bytes : most;
	}
	s->device.differentiate = differentiate;
	return st ? st : gpu_alloc(d, &s->workspace, most, err);
}

static const char *name_of(const struct attention_own_engine *s, unsigned variant)
{
	return s->backward ? attention_own_backward_name(s->backward, variant)
			   : attention_own_name(s->own, variant);
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct attention_own_engine *s = state;
	const struct attention_opts *o = opts;
	enum status st = attention_device_begin(&s->device, b, o, attend, err);

	s->search = (enum attention_search)o->search;
	if (!st)
		st = attention_own_create(&s->own, b->device, &s->device.common.c.problem, err);
	if (!st && s->device.common.c.backward)
		st = make_backward(s, b->device, err);
	if (!st)
		st = attention_device_fill(&s->device, err);
	if (st || !b->out)
		return st;
	result_text(b->out, &attention_fields[ATTENTION_FIELD_kernel], name_of(s, 0));
	attention_report(&s->device.common, b->out);
	return STATUS_OK;
}

static unsigned variants(void *state)
{
	const struct attention_own_engine *s = state;

	if (s->search == ATTENTION_SEARCH_FIRST)
		return 1;
	return s->backward ? attention_own_backward_count(s->backward) : attention_own_count(s->own);
}

static enum status select_variant(void *state, unsigned variant, const char **name, struct error *err)
{
	struct attention_own_engine *s = state;

	*name = name_of(s, variant);
	s->device.common.exact_done = false; /* each variant is verified completely */
	return s->backward ? attention_own_backward_select(s->backward, variant, err)
			   : attention_own_select(s->own, variant, err);
}

static void release(void *state)
{
	struct attention_own_engine *s = state;

	if (s->device.device)
		gpu_free(s->device.device, &s->workspace);
	attention_device_end(&s->device);
	attention_own_backward_destroy(&s->backward);
	attention_own_destroy(&s->own);
}

const struct engine attention_own_engine = {
	.name = "own",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.state_size = sizeof(struct attention_own_engine),
	.supports = supports,
	.prepare = prepare,
	.enqueue = attention_device_enqueue,
	.variants = variants,
	.select = select_variant,
	.release = release,
};
