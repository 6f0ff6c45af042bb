/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/attention/device.h"
#include <stdlib.h>
#include "gpu/attention/work_order.h"
#include "probe/shared/cpu.h"

static struct attention_operands operands(const struct attention_device *s, unsigned set)
{
	const gpu_ptr *t = s->tensor[set];
	struct attention_operands o = {
		.q = t[ATTENTION_Q],
		.k = t[ATTENTION_K],
		.v = t[ATTENTION_V],
		.o = t[ATTENTION_O],
		.lse = t[ATTENTION_LSE],
		.q_starts = s->starts,
		.kv_starts = s->starts,
		.order = s->order,
		.order_count = s->order_count,
	};

	if (s->common.c.problem.type == ATTENTION_E4M3)
		o.descale_q = o.descale_k = o.descale_v = o.scale_o = s->one;
	return o;
}

static enum status run(void *state, unsigned set, struct error *err)
{
	struct attention_device *s = state;
	const struct attention_operands o = operands(s, set);
	const gpu_ptr *t = s->tensor[set];
	const struct sdpa_gradients g = {.d_o = t[ATTENTION_D_O],
					 .d_q = t[ATTENTION_D_Q],
					 .d_k = t[ATTENTION_D_K],
					 .d_v = t[ATTENTION_D_V]};

	return s->common.c.backward ? s->differentiate(s, &o, &g, err) : s->attend(s, &o, err);
}

enum status attention_device_enqueue(void *state, uint64_t i, struct error *err)
{
	struct attention_device *s = state;
	unsigned set = (unsigned)(i % s->common.sets);

	s->common.written |= 1u << set;
	return run(s, set, err);
}

/* -- verification -- */

static enum status run_once(void *state, unsigned set, struct error *err)
{
	struct attention_device *s = state;
	enum status st = run(s, set, err);

	return st ? st : gpu_stream_wait(s->stream, err);
}

/* The data crosses the host's link once; the other sets are copied on the device. */
static enum status write_tensor(void *state, enum attention_tensor t, const void *data, struct error *err)
{
	struct attention_device *s = state;
	uint64_t bytes = attention_tensor_bytes(&s->common.c.problem, t);
	enum status st = gpu_copy_to(s->device, s->tensor[0][t], data, bytes, err);

	for (unsigned set = 1; !st && set < s->common.sets; set++)
		st = gpu_stream_copy(s->stream, s->tensor[set][t], s->tensor[0][t], bytes, err);
	return st ? st : gpu_stream_wait(s->stream, err);
}

static enum status poison(void *state, struct error *err)
{
	struct attention_device *s = state;
	const struct attention_problem *p = &s->common.c.problem;
	enum status st = STATUS_OK;

	for (unsigned set = 0; !st && set < s->common.sets; set++)
		for (enum attention_tensor t = 0; !st && t < ATTENTION_TENSORS; t++)
			if (attention_writes(&s->common.c, t))
				st = gpu_stream_fill32(s->stream, s->tensor[set][t],
						       0xffffffffu /* NaN in each type */,
						       attention_tensor_bytes(p, t) / 4, err);
	return st ? st : gpu_stream_wait(s->stream, err);
}

static enum status read_tensor(void *state, unsigned set, enum attention_tensor t, void *data,
			       struct error *err)
{
	struct attention_device *s = state;

	return gpu_copy_from(s->device, data, s->tensor[set][t],
			     attention_tensor_bytes(&s->common.c.problem, t), err);
}

static enum status forward(void *state, struct error *err)
{
	struct attention_device *s = state;
	enum status st = STATUS_OK;

	for (unsigned set = 0; !st && set < s->common.sets; set++) {
		const struct attention_operands o = operands(s, set);

		st = s->attend(s, &o, err);
	}
	return st ? st : gpu_stream_wait(s->stream, err);
}

static const struct attention_access device_access = {
	.write = write_tensor,
	.poison = poison,
	.run = run_once,
	.read = read_tensor,
	.forward = forward,
};

/* -- begin and end -- */

enum status
attention_device_begin(struct attention_device *s, const struct bench *b, const struct attention_opts *o,
		       enum status (*attend)(struct attention_device *s, const struct attention_operands *o,
					     struct error *err),
		       struct error *err)
{
	s->device = b->device;
	s->stream = b->stream[0];
	s->attend = attend;
	return attention_begin(&s->common, b, o, &device_access, err);
}

/* Allocates the order of the units of work. If one word cannot number every unit, there is no order; the
 * kernels work without it. */
static enum status order_alloc(struct attention_device *s, struct error *err)
{
	const uint32_t *starts = s->common.c.starts, batch = s->common.c.problem.batch;
	const uint64_t count = starts ? attention_order_count(starts, batch) : 0;
	const uint64_t bytes = count * sizeof(uint32_t);
	uint32_t *list;
	enum status st;

	if (!count || !attention_order_holds(starts, batch))
		return STATUS_OK;
	list = malloc((size_t)bytes);
	if (!list)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "attention: not enough memory for the order of the work");
	st = attention_order_fill(list, starts, batch, s->common.c.problem.mask != ATTENTION_FULL, err);
	if (!st)
		st = gpu_alloc(s->device, &s->order, bytes, err);
	if (!st)
		st = gpu_copy_to(s->device, s->order, list, bytes, err);
	s->order_count = (uint32_t)count;
	free(list);
	return st;
}

static enum status starts_alloc(struct attention_device *s, struct error *err)
{
	const struct attention_case *c = &s->common.c;
	const float one = 1;
	uint64_t bytes = ((uint64_t)c->problem.batch + 1) * sizeof(*c->starts);
	enum status st = STATUS_OK;

	if (c->starts)
		st = gpu_alloc(s->device, &s->starts, bytes, err);
	if (!st && c->starts)
		st = gpu_copy_to(s->device, s->starts, c->starts, bytes, err);
	if (!st)
		st = order_alloc(s, err);
	if (st || c->problem.type != ATTENTION_E4M3)
		return st;
	st = gpu_alloc(s->device, &s->one, sizeof(one), err);
	return st ? st : gpu_copy_to(s->device, s->one, &one, sizeof(one), err);
}

static enum status sets_alloc(struct attention_device *s, struct error *err)
{
	const struct attention_problem *p = &s->common.c.problem;
	enum status st = STATUS_OK;

	s->common.sets =
		(unsigned)operand_sets_on_device(s->device, (uint64_t)attention_set_bytes(&s->common.c));
	for (unsigned set = 0; !st && set < s->common.sets; set++)
		for (enum attention_tensor t = 0; !st && t < ATTENTION_TENSORS; t++)
			if (attention_has(&s->common.c, t))
				st = gpu_alloc(s->device, &s->tensor[set][t], attention_tensor_bytes(p, t),
					       err);
	return st;
}

enum status attention_device_fill(struct attention_device *s, struct error *err)
{
	struct cpu_pool *pool = NULL;
	enum status st = starts_alloc(s, err);

	if (!st)
		st = sets_alloc(s, err);
	if (!st)
		st = cpu_pool_usable(&pool, err);
	if (st)
		return st;
	s->common.pool = pool;
	st = attention_fill(&s->common, s->common.data, err);
	s->common.pool = NULL;
	cpu_pool_destroy(&pool);
	return st ? st : poison(s, err);
}

void attention_device_end(struct attention_device *s)
{
	attention_end(&s->common);
	if (!s->device)
		return;
	for (unsigned set = 0; set < OPERAND_SETS_MAX; set++)
		for (int t = 0; t < ATTENTION_TENSORS; t++)
			gpu_free(s->device, &s->tensor[set][t]);
	gpu_free(s->device, &s->starts);
	gpu_free(s->device, &s->order);
	gpu_free(s->device, &s->one);
}

enum status attention_device_refuse(struct error *err, const char *why)
{
	return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "attention: %s", why);
}

enum status attention_device_check_options(const struct attention_opts *o, struct error *err)
{
	return o->threads ? attention_device_refuse(
				    err, "threads is an option of the CPU engine; omit it on a GPU")
			  : STATUS_OK;
}
