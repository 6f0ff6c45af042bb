/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every element of every rank's result, on its device, against the answer that the inputs have by
 * construction: METHODS, "Collectives". What arrives is poisoned before; in place, and before anything was
 * timed, the inputs are made anew and one more call is looked at, else what the timed calls left.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "probe/collective/collective.h"

#define POISON 0xffffffffu /* no answer: NaN, or -1 in every byte */

enum { THREADS = 256, PER_SM = 8 };

static enum status launch(const struct collective_state *s, struct gpu_kernel *k, const void *args,
			  struct error *err)
{
	return gpu_launch_1d(k, s->bench->stream[0], PER_SM * gpu_sm_count(s->bench->device), THREADS, 0,
			     args, err);
}

static enum status fill_part(const struct collective_state *s, gpu_ptr out, uint64_t count, unsigned to,
			     struct error *err)
{
	const struct collective_inputs *in = &s->inputs;
	struct collective_fill_args a = {
		.out = out,
		.count = count,
		.seed = in->seed,
		.type = in->type,
		.rule = in->rule,
		.ranks = in->ranks,
		.rank = s->team->rank,
		.to = to,
		.slots = in->slots,
		.most = in->most,
		.unit = in->unit,
	};

	return launch(s, s->fill, &a, err);
}

/* Who alone sends to whom: 0 where it is to all. */
static unsigned receiver(const struct collective_state *s)
{
	return s->opts.op == COLLECTIVE_SEND_RECV ? (s->team->rank + 1) % s->team->size : 0;
}

/* In place the result is where the inputs are: what is not input is poisoned first. */
enum status collective_fill_inputs(struct collective_state *s, struct error *err)
{
	const struct collective_memory *m = &s->now->memory;
	unsigned bytes = collective_type_bytes(s->inputs.type);
	enum status st = STATUS_OK;

	s->iterations = 0;
	for (int i = 0; i < 2 && !st; i++)
		if (m->base[i])
			st = gpu_stream_fill32(s->bench->stream[0], m->base[i], POISON, m->size[i] / 4, err);
	if (s->opts.op != COLLECTIVE_ALL_TO_ALL)
		return st ? st : fill_part(s, m->send, s->shape.send, receiver(s), err);
	for (unsigned to = 0; to < s->team->size && !st; to++)
		st = fill_part(s, m->send + to * s->shape.count * bytes, s->shape.count, to, err);
	return st;
}

/* A stretch of the result with one law. */
struct part {
	uint64_t offset, count, first; /* elements: in the result of this rank, and in the numbering */
	unsigned from, to;
};

static unsigned parts(const struct collective_state *s)
{
	bool by_sender = s->opts.op == COLLECTIVE_ALL_GATHER || s->opts.op == COLLECTIVE_ALL_TO_ALL;

	if (s->opts.op == COLLECTIVE_REDUCE && s->team->rank != s->opts.root)
		return 0; /* nothing comes to it */
	return by_sender ? s->team->size : 1;
}

static struct part part_at(const struct collective_state *s, unsigned i)
{
	unsigned rank = s->team->rank, size = s->team->size;
	struct part p = {.count = s->shape.count};

	switch ((enum collective_op)s->opts.op) {
	case COLLECTIVE_ALL_GATHER:
		p.from = i;
		p.offset = i * p.count;
		break;
	case COLLECTIVE_ALL_TO_ALL:
		p.from = i;
		p.to = rank;
		p.offset = i * p.count;
		break;
	case COLLECTIVE_REDUCE_SCATTER:
		p.first = rank * p.count;
		break;
	case COLLECTIVE_BROADCAST:
		p.from = s->opts.root;
		break;
	case COLLECTIVE_SEND_RECV:
		p.from = (rank + size - 1) % size;
		p.to = rank;
		break;
	default:
		break;
	}
	return p;
}

/* The result begins where the rank receives; gathered in place, where its memory begins. */
static gpu_ptr result_of(const struct collective_state *s)
{
	const struct collective_memory *m = &s->now->memory;

	return s->opts.op == COLLECTIVE_ALL_GATHER && s->opts.place == COLLECTIVE_IN ? m->base[0]
										     : m->receive;
}

static enum status check_part(const struct collective_state *s, unsigned i, struct error *err)
{
	const struct collective_inputs *in = &s->inputs;
	struct part p = part_at(s, i);
	struct collective_check_args a = {
		.data = result_of(s) + p.offset * collective_type_bytes(in->type),
		.found = s->found + i * sizeof(struct operand_found),
		.suspect = s->found + s->team->size * sizeof(struct operand_found),
		.count = p.count,
		.first = p.first,
		.seed = in->seed,
		.type = in->type,
		.rule = in->rule,
		.ranks = in->ranks,
		.from = p.from,
		.to = p.to,
		.slots = in->slots,
		.most = in->most,
		.unit = in->unit,
		.ulp = in->ulp,
	};

	return launch(s, s->check, &a, err);
}

/* The first wrong element of the part: what stands there and what should. */
static enum status look(const struct collective_state *s, unsigned i, uint64_t at, struct wrong *w,
			struct error *err)
{
	const struct collective_inputs *in = &s->inputs;
	unsigned bytes = collective_type_bytes(in->type);
	struct part p = part_at(s, i);
	uint64_t found = 0, expected;
	enum status st =
		gpu_copy_from(s->bench->device, &found, result_of(s) + (p.offset + at) * bytes, bytes, err);

	expected = collective_moved(in, p.from, p.to, p.first + at);
	w->first_index = p.offset + at;
	w->found = collective_number(in->type, &found);
	w->expected = in->rule == COLLECTIVE_MOVE ? collective_number(in->type, &expected)
						  : collective_answer(in, p.first + at);
	snprintf(w->place, sizeof(w->place), "%s, element %" PRIu64, s->team->name, p.offset + at);
	if (in->rule == COLLECTIVE_MOVE && s->team->size > 2)
		snprintf(w->place + strlen(w->place), sizeof(w->place) - strlen(w->place), ", from rank %u",
			 p.from);
	return st;
}

/* The counts of this rank; `suspect` begins behind the parts' records. */
static enum status count(struct collective_state *s, struct operand_found *found, size_t size,
			 struct wrong *w, struct error *err)
{
	enum status st = STATUS_OK;

	memset(found, 0, size);
	for (unsigned i = 0; i < s->team->size; i++)
		found[i].first = UINT64_MAX;
	st = gpu_copy_to(s->bench->device, s->found, found, size, err);
	for (unsigned i = 0; i < parts(s) && !st; i++)
		st = check_part(s, i, err);
	if (!st)
		st = gpu_copy_from(s->bench->device, found, s->found, size, err);
	for (unsigned i = 0; i < parts(s) && !st; i++) {
		w->total += part_at(s, i).count;
		w->checked += part_at(s, i).count;
		w->nan |= found[i].nan != 0;
		if (found[i].wrong && !w->count)
			st = look(s, i, found[i].first, w, err);
		w->count += found[i].wrong;
	}
	return st;
}

/* Whose share is missing or there twice, where that explains what is wrong. */
static void blame(const struct collective_state *s, const unsigned long long *suspect, struct wrong *w)
{
	unsigned rank = 0;
	bool twice = false;
	size_t at = strlen(w->place);

	if (collective_suspect(suspect, s->team->size, &rank, &twice))
		snprintf(w->place + at, sizeof(w->place) - at, ": rank %u's share is %s", rank,
			 twice ? "in it twice" : "missing");
}

static enum status check(struct collective_state *s, struct wrong *w, struct error *err)
{
	unsigned size = s->team->size;
	size_t bytes = size * sizeof(struct operand_found) + (2 * size + 1) * sizeof(unsigned long long);
	struct operand_found *found = malloc(bytes);
	enum status st =
		found ? count(s, found, bytes, w, err)
		      : error_set(err, STATUS_NO_RESOURCE, "collective: no memory for what was found");

	if (!st && w->count && s->inputs.rule != COLLECTIVE_MOVE)
		blame(s, (const unsigned long long *)(const void *)(found + size), w);
	free(found);
	return st;
}

/* Inputs that are as they should be, and a call whose result is there. */
static enum status fresh(struct collective_state *s, struct error *err)
{
	enum status st = collective_fill_inputs(s, err);

	st = team_agree(s->team, st, err);
	team_at(s->team->board, TEAM_OP_ENQUEUE);
	if (!st)
		st = collective_call(s, err);
	return team_agree(s->team, st, err);
}

enum status collective_verify(void *state, struct wrong *w, struct error *err)
{
	struct collective_state *s = state;
	bool again = !s->now->filled || !s->iterations || s->opts.place == COLLECTIVE_IN;
	enum status st = STATUS_OK;

	*w = (struct wrong){0};
	if (again)
		st = fresh(s, err);
	if (!st)
		st = collective_wait(s, err);
	if (!st)
		st = check(s, w, err);
	st = team_agree(s->team, st, err); /* a wrong result is no failure: all go on */
	if (st)
		return st;
	s->now->filled = true;
	st = collective_fill_inputs(s, err);
	if (!st)
		st = team_agree(s->team, collective_wait(s, err), err);
	if (st || !w->count)
		return st;
	return error_set_cause(err, STATUS_MISMATCH, CAUSE_WRONG_RESULT,
			       "collective: %s: %" PRIu64 " of %" PRIu64
			       " elements are wrong, the first is at %s: expected %g, found %g",
			       collective_op_name(s->opts.op), w->count, w->checked, w->place, w->expected,
			       w->found);
}
