/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by cuDNN: the batches that it supports, and its plans for them. */
#include <pthread.h>
#include <stdlib.h>
#include "core/clock.h"
#include "model/gpu/attention_internal.h"

bool attention_state_plain(const struct attention_state *a)
{
	return a->gpu->options.attention == GPU_ATTENTION_PLAIN ||
	       a->gpu->options.precision != GPU_PRECISION_BF16;
}

enum status attention_state_open_cudnn(struct attention_state *a, struct error *err)
{
	const struct gpu_backend_options *o = &a->gpu->options;
	struct error why = {0};
	enum status st;
	int version;

	if (o->attention == GPU_ATTENTION_OWN || attention_state_plain(a) ||
	    (o->deterministic && o->attention == GPU_ATTENTION_AUTO))
		return STATUS_OK;
	st = sdpa_open(&a->sdpa, a->gpu->device, o->cudnn, 0, &why);
	if (st && o->attention == GPU_ATTENTION_AUTO)
		return STATUS_OK; /* assay's kernels compute it */
	if (st)
		return error_set_cause(err, st, why.cause, "%s", why.text);
	version = sdpa_version(a->sdpa);
	snprintf(a->name, sizeof(a->name), "cuDNN %d.%d.%d", version / 10000, version / 100 % 100,
		 version % 100);
	return STATUS_OK;
}

const struct gpu_attention_choice *attention_state_known(const struct attention_state *a, int64_t docs,
							 int64_t length)
{
	for (size_t i = 0; i < a->known_count; i++)
		if (a->known[i].docs == docs && a->known[i].length == length)
			return &a->known[i];
	return NULL;
}

int64_t attention_state_one_length(const struct batch *b)
{
	const int64_t length = b->doc_start[1] - b->doc_start[0];

	for (int64_t i = 1; i < b->docs; i++)
		if (b->doc_start[i + 1] - b->doc_start[i] != length)
			return 0;
	return length;
}

static struct attention_strides strides_of(int64_t length, int64_t ld, int head_dim)
{
	return (struct attention_strides){
		.batch = (uint64_t)(length * ld), .head = (uint64_t)head_dim, .row = (uint64_t)ld};
}

struct attention_problem attention_state_problem(const struct attention *at, int64_t docs, int64_t length,
						 int64_t ld_qkv, int64_t ld_o)
{
	const struct attention_strides qkv = strides_of(length, ld_qkv, at->head_dim);

	return (struct attention_problem){
		.type = ATTENTION_BF16,
		.out_type = ATTENTION_BF16,
		.batch = (uint32_t)docs,
		.heads = (uint32_t)at->heads,
		.kv_heads = (uint32_t)at->kv_heads,
		.q_len = (uint32_t)length,
		.kv_len = (uint32_t)length,
		.head_dim = (uint32_t)at->head_dim,
		.mask = ATTENTION_CAUSAL,
		.scale = (double)at->scale,
		.q = qkv,
		.k = qkv,
		.v = qkv,
		.o = strides_of(length, ld_o, at->head_dim),
		.want_lse = true,
	};
}

static enum status plan(const struct attention_state *a, const struct pair *p, enum sdpa_direction direction,
			struct sdpa_plan **out, struct error *err)
{
	const struct attention_problem problem =
		attention_state_problem(&p->at, p->docs, p->length, p->ld_qkv, p->ld_o);
	enum status st = sdpa_plan_create(out, a->sdpa, &problem, direction, err);

	return st ? st : sdpa_plan_first(*out, err);
}

/* cuDNN is known to be wrong for some shapes: with a causal mask on Hopper, if the length modulo 128 is 64
 * (pytorch#196678: NaN in dQ). */
static bool trusted(int64_t length)
{
	return length > 1 && length % 128 != 64;
}

/* Makes plans for both passes, or for neither. */
static enum status plan_both(const struct attention_state *a, struct pair *p, struct error *err)
{
	enum status st = plan(a, p, SDPA_FORWARD, &p->forward, err);

	if (!st)
		st = plan(a, p, SDPA_BACKWARD, &p->backward, err);
	if (st) {
		sdpa_plan_destroy(&p->forward);
		sdpa_plan_destroy(&p->backward);
	}
	return st;
}

/* cuDNN takes a second or more to build plans, during which the device would be idle. So a thread builds
 * them, in a pair of its own. */
struct building {
	pthread_t thread;
	const struct attention_state *attends;
	struct pair pair;
};

static void *build(void *arg)
{
	struct building *b = arg;
	struct error ignored = {0}; /* then assay's kernels compute it, as without cuDNN */

	if (!gpu_current(b->attends->gpu->device, &ignored))
		plan_both(b->attends, &b->pair, &ignored);
	return NULL;
}

/* Starts a thread to build plans; returns whether it did. Only for the first pair, so that no other pair
 * uses cuDNN's handle meanwhile. */
static bool begin_building(struct attention_state *a, const struct pair *p)
{
	struct building *b = calloc(1, sizeof(*b));

	if (!b || a->count) {
		free(b);
		return false;
	}
	b->attends = a;
	b->pair = *p;
	if (pthread_create(&b->thread, NULL, build, b)) {
		free(b);
		return false;
	}
	a->building = b;
	return true;
}

double attention_state_planned_s(const struct attention_state *a)
{
	return a->planned_s;
}

bool attention_state_wait(struct attention_state *a)
{
	struct building *b = a->building;
	const double began_s = clock_now_s();

	if (!b)
		return false;
	pthread_join(b->thread, NULL);
	a->planned_s += clock_now_s() - began_s;
	a->pair[0].forward = b->pair.forward;
	a->pair[0].backward = b->pair.backward;
	a->building = NULL;
	free(b);
	return true;
}

static enum status add_pair(struct attention_state *a, const struct pair *wanted, struct pair **out,
			    struct error *err)
{
	const bool must = a->gpu->options.attention == GPU_ATTENTION_CUDNN;
	const struct gpu_attention_choice *known;
	const double began_s = clock_now_s();
	struct error why = {0};
	struct pair *p;
	enum status st = STATUS_OK;

	if (a->count == a->room) {
		const size_t room = a->room ? 2 * a->room : 8;
		struct pair *more = realloc(a->pair, room * sizeof(*more));

		if (!more)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for an attention plan");
		a->pair = more;
		a->room = room;
	}
	p = &a->pair[a->count];
	*p = *wanted;
	if (!trusted(p->length))
		st = error_set(&why, STATUS_UNSUPPORTED,
			       "cuDNN's attention is not used at length %lld, where it is known to be wrong",
			       (long long)p->length);
	else if (must || !a->gpu->held || !begin_building(a, p))
		st = plan_both(a, p, &why);
	a->planned_s += clock_now_s() - began_s;
	if (st && (must || (st != STATUS_UNSUPPORTED && st != STATUS_NO_RESOURCE)))
		return error_set_cause(err, st, why.cause, "%s", why.text);
	known = attention_state_known(a, p->docs, p->length);
	p->timed = known && a->gpu->options.tune;
	p->by_own = p->timed && known->by_own;
	p->recalled = p->timed;
	p->cached = p->timed && known->cached;
	a->count++;
	*out = p;
	return STATUS_OK;
}

enum status attention_state_pair(struct attention_state *a, const struct attention *at, const struct batch *b,
				 int64_t ld_qkv, int64_t ld_o, struct pair **out, struct error *err)
{
	const struct pair wanted = {.docs = b->docs,
				    .length = attention_state_one_length(b),
				    .at = *at,
				    .ld_qkv = ld_qkv,
				    .ld_o = ld_o};
	enum status st = STATUS_OK;

	*out = NULL;
	if (!a->sdpa || !wanted.length)
		return STATUS_OK;
	if (!a->gpu->held)
		attention_state_wait(a);
	for (size_t i = 0; i < a->count && !*out; i++) {
		struct pair *p = &a->pair[i];

		if (p->docs == wanted.docs && p->length == wanted.length && p->ld_qkv == ld_qkv &&
		    p->ld_o == ld_o && !memcmp(&p->at, at, sizeof(*at)))
			*out = p;
	}
	if (!*out) {
		attention_state_wait(a); /* only one thread at a time may use cuDNN's handle */
		st = add_pair(a, &wanted, out, err);
	}
	if (!st && !(*out)->forward)
		*out = NULL;
	return st;
}
