/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the options into the problem: lengths, layout and block lists; and computes the work of one
 * iteration. */
#include <inttypes.h>
#include <stdlib.h>
#include "core/clock.h"
#include "core/math/random.h"
#include "probe/attention/attention.h"
#include "probe/attention/attended_pairs.h"

enum { STREAM_LENGTHS = 97 };

static enum status no_room(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "attention: not enough memory for the problem");
}

/* -- lengths -- */

/* Reads one number of a list like "512+300+77", and moves *at behind it. */
static enum status next_length(const char **at, const struct attention_opts *o, uint32_t *out,
			       struct error *err)
{
	char *end = NULL;
	unsigned long value = **at >= '0' && **at <= '9' ? strtoul(*at, &end, 10) : 0;

	if (!end || (*end && *end != '+'))
		return error_set(
			err, STATUS_BAD_INPUT,
			"attention: lengths=%.60s is neither \"random\" nor one number per sequence, separated by +",
			o->lengths);
	if (value > o->seq)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: lengths=%.60s: %lu is longer than seq=%" PRIu32, o->lengths,
				 value, o->seq);
	*out = (uint32_t)value;
	*at = *end ? end + 1 : end;
	return STATUS_OK;
}

static enum status list_lengths(uint32_t *starts, const struct attention_opts *o, struct error *err)
{
	const char *at = o->lengths;
	uint32_t longest = 0, length = 0;
	enum status st = STATUS_OK;

	for (uint32_t b = 0; !st && b < o->batch; b++) {
		if (b && !*at)
			return error_set(err, STATUS_BAD_INPUT,
					 "attention: lengths=%.60s gives only %" PRIu32 " of the %" PRIu32
					 " lengths that option batch needs",
					 o->lengths, b, o->batch);
		st = next_length(&at, o, &length, err);
		starts[b + 1] = starts[b] + length;
		longest = length > longest ? length : longest;
	}
	if (!st && *at)
		st = error_set(err, STATUS_BAD_INPUT,
			       "attention: lengths=%.60s gives more lengths than the %" PRIu32
			       " sequences of batch",
			       o->lengths, o->batch);
	if (!st && longest != o->seq)
		st = error_set(err, STATUS_BAD_INPUT,
			       "attention: lengths=%.60s: the longest sequence has %" PRIu32
			       " tokens and must equal seq=%" PRIu32,
			       o->lengths, longest, o->seq);
	return st;
}

static enum status make_starts(struct attention_case *c, const struct attention_opts *o, struct error *err)
{
	if (o->kv_seq && o->kv_seq != o->seq)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: lengths apply to queries and keys, so kv_seq=%" PRIu32
				 " must equal seq=%" PRIu32,
				 o->kv_seq, o->seq);
	if ((double)o->batch * o->seq > INT32_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: the sequences have more than %d tokens in total", INT32_MAX);
	c->starts = calloc((size_t)o->batch + 1, sizeof(*c->starts));
	if (!c->starts)
		return no_room(err);
	c->problem.q_starts = c->problem.kv_starts = c->starts;
	if (strcmp(o->lengths, "random"))
		return list_lengths(c->starts, o, err);
	for (uint32_t b = 0; b < o->batch; b++) { /* the first sequence has length seq, the others 1 .. seq */
		uint64_t word = b ? random_u32(o->seed, STREAM_LENGTHS, b) : UINT32_MAX;

		c->starts[b + 1] = c->starts[b] + 1 + (uint32_t)(word * o->seq >> 32);
	}
	return STATUS_OK;
}

/* -- layout -- */

static struct attention_strides strides_of(const struct attention_problem *p, enum attention_layout layout,
					   uint32_t heads, uint32_t rows)
{
	uint64_t d = p->head_dim, all = p->q_starts ? p->q_starts[p->batch] : rows;

	if (layout == ATTENTION_BSHD)
		return (struct attention_strides){.batch = all * heads * d, .head = d, .row = heads * d};
	return (struct attention_strides){.batch = all * heads * d, .head = (all ? all : 1) * d, .row = d};
}

static void lay_out(struct attention_problem *p, enum attention_layout layout)
{
	p->q = p->o = strides_of(p, layout, p->heads, p->q_len);
	p->k = p->v = strides_of(p, layout, p->kv_heads, p->kv_len);
}

/* The tensor with the same layout: that of a gradient is the layout of its tensor. */
static enum attention_tensor like(enum attention_tensor t)
{
	static const enum attention_tensor as[ATTENTION_TENSORS] = {
		ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_O, ATTENTION_LSE,
		ATTENTION_O, ATTENTION_Q, ATTENTION_K, ATTENTION_V,
	};

	return as[t];
}

static bool of_keys(enum attention_tensor t)
{
	return like(t) == ATTENTION_K || like(t) == ATTENTION_V;
}

bool attention_has(const struct attention_case *c, enum attention_tensor t)
{
	return c->backward || t <= ATTENTION_LSE;
}

bool attention_writes(const struct attention_case *c, enum attention_tensor t)
{
	return c->backward ? t >= ATTENTION_D_Q : t == ATTENTION_O || t == ATTENTION_LSE;
}

const char *attention_tensor_name(enum attention_tensor t)
{
	static const char *const names[ATTENTION_TENSORS] = {"Q",  "K",	 "V",  "O", "log-sum-exp",
							     "dO", "dQ", "dK", "dV"};

	return names[t];
}

uint32_t attention_tensor_heads(const struct attention_problem *p, enum attention_tensor t)
{
	return of_keys(t) ? p->kv_heads : p->heads;
}

uint32_t attention_tensor_rows(const struct attention_problem *p, enum attention_tensor t, uint32_t b)
{
	return of_keys(t) ? attention_kv_len(p, b) : attention_q_len(p, b);
}

uint64_t attention_tensor_at(const struct attention_problem *p, enum attention_tensor t, uint32_t b,
			     uint32_t h, uint32_t row)
{
	enum attention_tensor as = like(t);
	struct attention_strides s = as == ATTENTION_Q	 ? attention_q_strides(p)
				     : as == ATTENTION_K ? attention_k_strides(p)
				     : as == ATTENTION_V ? attention_v_strides(p)
							 : attention_o_strides(p);
	const uint32_t *starts = of_keys(t) ? p->kv_starts : p->q_starts;

	if (t == ATTENTION_LSE)
		return ((uint64_t)b * p->heads + h) * p->q_len + row;
	return h * s.head + (starts ? (starts[b] + (uint64_t)row) * s.row : b * s.batch + row * s.row);
}

enum attention_type attention_tensor_type(const struct attention_problem *p, enum attention_tensor t)
{
	return like(t) == ATTENTION_O ? p->out_type : p->type;
}

uint64_t attention_tensor_bytes(const struct attention_problem *p, enum attention_tensor t)
{
	switch (like(t)) {
	case ATTENTION_Q:
		return attention_q_count(p) * attention_type_bytes(p->type);
	case ATTENTION_K:
		return attention_k_count(p) * attention_type_bytes(p->type);
	case ATTENTION_V:
		return attention_v_count(p) * attention_type_bytes(p->type);
	case ATTENTION_O:
		return attention_o_count(p) * attention_type_bytes(p->out_type);
	default:
		return attention_lse_count(p) * sizeof(float);
	}
}

double attention_set_bytes(const struct attention_case *c)
{
	double bytes = 0;

	for (int t = 0; t < ATTENTION_TENSORS; t++)
		if (attention_has(c, (enum attention_tensor)t))
			bytes += (double)attention_tensor_bytes(&c->problem, (enum attention_tensor)t);
	return bytes;
}

/* -- the case -- */

static enum status read_blocks(struct attention_case *c, const struct attention_opts *o, struct error *err)
{
	enum status st;

	if (o->pattern != ATTENTION_LISTS_FILE)
		return STATUS_OK;
	st = attention_blocks_read(&c->blocks, o->file, err);
	return st ? st : attention_blocks_fit(c->blocks, &c->problem, o->file, err);
}

static enum status build_blocks(struct attention_case *c, const struct attention_opts *o,
				const struct bench *b, struct error *err)
{
	static const enum attention_pattern patterns[] = {
		[ATTENTION_LISTS_MASK] = ATTENTION_BY_MASK,
		[ATTENTION_LISTS_STRIDED] = ATTENTION_STRIDED,
		[ATTENTION_LISTS_RANDOM] = ATTENTION_RANDOM,
	};
	const struct attention_pattern_of how = {patterns[o->pattern], o->block_q, o->block_k, o->density,
						 o->seed};

	return attention_blocks_build(&c->blocks, &c->problem, &how, b ? b->stop : NULL, err);
}

static enum status check_kept(const struct attention_case *c, const struct attention_opts *o,
			      struct error *err)
{
	if (!c->blocks || attention_attended_pairs(&c->problem, c->blocks) > 0)
		return STATUS_OK;
	if (o->pattern == ATTENTION_LISTS_FILE)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: the lists keep no pair of query and key, so there is nothing to compute",
			o->file);
	return error_set(err, STATUS_BAD_INPUT,
			 "attention: density=%g of %" PRIu32 " x %" PRIu32
			 " blocks keeps no pair of query and key, so there is nothing to compute",
			 o->density, c->blocks->q_blocks, c->blocks->k_blocks);
}

/* Rejects options that have no effect with the values of other options. */
static enum status check_belonging(const struct attention_opts *o, struct error *err)
{
	bool dense = o->pattern == ATTENTION_LISTS_STRIDED || o->pattern == ATTENTION_LISTS_RANDOM;

	if ((o->left || o->right) && o->mask != ATTENTION_WINDOW)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: left and right need mask=window, not mask=%s",
				 attention_mask_name((enum attention_mask)o->mask));
	if (o->out != ATTENTION_OUT_WIDE && o->type != ATTENTION_E4M3)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: out needs type=e4m3; with type=%s, O has the type of Q",
				 attention_type_name((enum attention_type)o->type));
	if ((o->density < 1 || o->density > 1) && !dense)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: density needs pattern=strided or pattern=random");
	if (o->pass == ATTENTION_BACKWARD &&
	    (o->pattern != ATTENTION_LISTS_NONE || o->type == ATTENTION_E4M3))
		return error_set(
			err, STATUS_BAD_INPUT,
			"attention: pass=backward supports only types of 16 bits, without block lists");
	if (!o->file != (o->pattern != ATTENTION_LISTS_FILE))
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: pattern=file needs file=PATH, and file=PATH needs pattern=file");
	return STATUS_OK;
}

static enum status make_problem(struct attention_case *c, const struct attention_opts *o, struct error *err)
{
	struct attention_problem *p = &c->problem;
	enum status st = check_belonging(o, err);

	*p = (struct attention_problem){
		.type = (enum attention_type)o->type,
		.out_type = o->type == ATTENTION_E4M3 && o->out == ATTENTION_OUT_WIDE
				    ? ATTENTION_BF16
				    : (enum attention_type)o->type,
		.batch = o->batch,
		.heads = o->heads,
		.kv_heads = o->kv_heads ? o->kv_heads : o->heads,
		.q_len = o->seq,
		.kv_len = o->kv_seq ? o->kv_seq : o->seq,
		.head_dim = o->head_dim,
		.mask = (enum attention_mask)o->mask,
		.window_left = o->left,
		.window_right = o->right,
		.want_lse = true,
	};
	if (!st && o->lengths)
		st = make_starts(c, o, err);
	if (st)
		return st;
	lay_out(p, (enum attention_layout)o->layout);
	st = attention_check(p, err);
	if (!st && attention_set_bytes(c) > 0x1p40)
		st = error_set(err, STATUS_BAD_INPUT,
			       "attention: Q, K, V and O need %.3g bytes, more than 2^40; reduce their sizes",
			       attention_set_bytes(c));
	return st;
}

enum status attention_case_describe(struct attention_case *c, const struct attention_opts *o,
				    struct error *err)
{
	enum status st;

	*c = (struct attention_case){.backward = o->pass == ATTENTION_BACKWARD};
	st = make_problem(c, o, err);
	if (!st)
		st = read_blocks(c, o, err);
	if (st)
		attention_case_release(c);
	return st;
}

enum status attention_case_make(struct attention_case *c, const struct attention_opts *o,
				const struct bench *b, struct error *err)
{
	const struct clock *clock = b ? b->clock : NULL;
	uint64_t t0 = clock ? clock_now_ns(clock) : 0;
	enum status st = attention_case_describe(c, o, err);

	if (st)
		return st;
	if (o->pattern != ATTENTION_LISTS_NONE && !c->blocks)
		st = build_blocks(c, o, b, err);
	c->build_s = clock ? (double)(clock_now_ns(clock) - t0) * 1e-9 : 0;
	if (!st)
		st = check_kept(c, o, err);
	if (st)
		attention_case_release(c);
	return st;
}

void attention_case_release(struct attention_case *c)
{
	attention_blocks_free(c->blocks);
	free(c->starts);
	*c = (struct attention_case){0};
}

/* -- work -- */

double attention_case_flop(const struct attention_case *c)
{
	if (c->backward)
		return attention_flop_backward(&c->problem);
	if (!c->blocks)
		return attention_flop(&c->problem);
	return 4 * (double)c->problem.head_dim * attention_attended_pairs(&c->problem, c->blocks);
}

static double q_elements(const struct attention_problem *p)
{
	double rows = p->q_starts ? (double)p->q_starts[p->batch] : (double)p->batch * p->q_len;

	return rows * p->heads * p->head_dim;
}

static double k_elements(const struct attention_problem *p)
{
	double rows = p->kv_starts ? (double)p->kv_starts[p->batch] : (double)p->batch * p->kv_len;

	return rows * p->kv_heads * p->head_dim;
}

static double forward_write_bytes(const struct attention_problem *p)
{
	return q_elements(p) * attention_type_bytes(p->out_type) +
	       q_elements(p) / p->head_dim * sizeof(float);
}

double attention_case_read_bytes(const struct attention_case *c)
{
	const struct attention_problem *p = &c->problem;
	double left = 1 - attention_attended_keys(p, c->blocks);

	if (c->backward)
		return attention_bytes(p) + q_elements(p) * attention_type_bytes(p->out_type);
	return attention_bytes(p) - forward_write_bytes(p) -
	       2 * left * k_elements(p) * attention_type_bytes(p->type);
}

double attention_case_write_bytes(const struct attention_case *c)
{
	const struct attention_problem *p = &c->problem;

	if (c->backward)
		return (q_elements(p) + 2 * k_elements(p)) * attention_type_bytes(p->type);
	return forward_write_bytes(p);
}
