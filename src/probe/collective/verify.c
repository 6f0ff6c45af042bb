/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification of engine `nccl` compares every element of every rank's result, on its device, with the known
 * correct value (docs/explanation/methods/collectives.md, "Inputs with known answers"). The destination is
 * poisoned first. In general the result of the timed calls is checked. For in-place calls, and before the
 * first timed call, the inputs are filled again and one more call is checked.
 */
#include <stdlib.h>
#include "probe/collective/collective.h"
#include "run/worker/fault_injection.h"

#define POISON 0xffffffffu /* not a correct value in any type: NaN, or -1 in every byte */

enum { THREADS = 256, PER_SM = 8 };

static enum status launch(const struct collective_state *s, struct gpu_kernel *k, const void *args,
			  struct error *err)
{
	return gpu_launch_1d(k, s->bench->stream[0], PER_SM * gpu_sm_count(s->bench->device), THREADS, 0,
			     args, err);
}

static enum status fill_part(const struct collective_state *s, const struct collective_part *p,
			     struct error *err)
{
	const struct collective_inputs *in = &s->inputs;
	struct collective_fill_args a = {
		.out = s->now->memory.send + p->offset * collective_type_bytes(in->type),
		.count = p->count,
		.seed = in->seed,
		.type = in->type,
		.rule = in->rule,
		.ranks = in->ranks,
		.rank = p->from,
		.to = p->to,
		.slots = in->slots,
		.most = in->most,
		.unit = in->unit,
	};

	return launch(s, s->fill, &a, err);
}

/* Injects a test's fault: flips one bit of this rank's input, the highest of four bytes. */
static enum status fault_injection_wrong(const struct collective_state *s, enum status st, struct error *err)
{
	gpu_ptr at = s->now->memory.send;
	uint32_t word;

	if (st || !fault_injection_in(FAULT_INJECTION_WRONG, s->bench->gpu))
		return st;
	st = gpu_copy_from(s->bench->device, &word, at, sizeof(word), err);
	word ^= 0x80000000u;
	return st ? st : gpu_copy_to(s->bench->device, at, &word, sizeof(word), err);
}

/* In place, the result overlaps the inputs, so the poison is written first and the inputs after it. */
enum status collective_fill_inputs(struct collective_state *s, struct error *err)
{
	const struct collective_memory *m = &s->now->memory;
	const struct collective_member at = collective_member_of(&s->opts, &s->shape, s->team);
	enum status st = STATUS_OK;

	s->iterations = 0;
	for (int i = 0; i < 2 && !st; i++)
		if (m->base[i])
			st = gpu_stream_fill32(s->bench->stream[0], m->base[i], POISON, m->size[i] / 4, err);
	for (unsigned i = 0; i < collective_parts_given(&at) && !st; i++) {
		const struct collective_part p = collective_part_given(&at, i);

		st = fill_part(s, &p, err);
	}
	return fault_injection_wrong(s, st, err);
}

/* Start of the result: the rank's receive array; for a gather in place, the start of the whole array. */
static gpu_ptr result_of(const struct collective_state *s)
{
	const struct collective_memory *m = &s->now->memory;

	return s->opts.op == COLLECTIVE_ALL_GATHER && s->opts.place == COLLECTIVE_IN ? m->base[0]
										     : m->receive;
}

static enum status check_part(const struct collective_state *s, unsigned i, const struct collective_part *p,
			      struct error *err)
{
	const struct collective_inputs *in = &s->inputs;
	struct collective_check_args a = {
		.data = result_of(s) + p->offset * collective_type_bytes(in->type),
		.found = s->found + i * sizeof(struct operand_found),
		.suspect = s->found + s->team->size * sizeof(struct operand_found),
		.count = p->count,
		.first = p->first,
		.seed = in->seed,
		.type = in->type,
		.rule = in->rule,
		.ranks = in->ranks,
		.from = p->from,
		.to = p->to,
		.slots = in->slots,
		.most = in->most,
		.unit = in->unit,
		.ulp = in->ulp,
	};

	return launch(s, s->check, &a, err);
}

/* Reads the first wrong element of the part, and records its value and the expected one. */
static enum status look(const struct collective_state *s, const struct collective_part *p, uint64_t at,
			struct wrong *w, struct error *err)
{
	unsigned bytes = collective_type_bytes(s->inputs.type);
	uint64_t found = 0;
	enum status st =
		gpu_copy_from(s->bench->device, &found, result_of(s) + (p->offset + at) * bytes, bytes, err);

	collective_place_wrong(&s->inputs, p, at, &found, w);
	return st;
}

/* Adds up this rank's counts; `suspect` starts after the records of the parts. */
static enum status count(struct collective_state *s, struct operand_found *found, size_t size,
			 struct wrong *w, struct error *err)
{
	const struct collective_member at = collective_member_of(&s->opts, &s->shape, s->team);
	unsigned parts = collective_parts(&at);
	enum status st = STATUS_OK;

	memset(found, 0, size);
	for (unsigned i = 0; i < s->team->size; i++)
		found[i].first = UINT64_MAX;
	st = gpu_copy_to(s->bench->device, s->found, found, size, err);
	for (unsigned i = 0; i < parts && !st; i++) {
		const struct collective_part p = collective_part(&at, i);

		st = check_part(s, i, &p, err);
	}
	if (!st)
		st = gpu_copy_from(s->bench->device, found, s->found, size, err);
	for (unsigned i = 0; i < parts && !st; i++) {
		const struct collective_part p = collective_part(&at, i);

		w->total += p.count;
		w->checked += p.count;
		w->nan |= found[i].nan != 0;
		if (found[i].wrong && !w->count)
			st = look(s, &p, found[i].first, w, err);
		collective_blame_sender(&s->inputs, &p, found[i].wrong, w);
		w->count += found[i].wrong;
	}
	return st;
}

static enum status check(struct collective_state *s, struct wrong *w, struct error *err)
{
	unsigned size = s->team->size;
	size_t bytes = size * sizeof(struct operand_found) + (2 * size + 1) * sizeof(unsigned long long);
	struct operand_found *found = malloc(bytes);
	enum status st = found ? count(s, found, bytes, w, err)
			       : error_set(err, STATUS_NO_RESOURCE,
					   "collective: not enough memory for the results of the check");

	if (!st && w->count)
		collective_blame(&s->inputs, (const unsigned long long *)(const void *)(found + size), w);
	free(found);
	return st;
}

/* Fills the inputs again and makes one call. */
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
	st = team_agree(s->team, st, err); /* a wrong result is not a failure here: all ranks continue */
	if (st)
		return st;
	s->now->filled = true;
	st = collective_fill_inputs(s, err);
	if (!st)
		st = team_agree(s->team, collective_wait(s, err), err);
	if (st || !w->count)
		return st;
	return collective_mismatch(&s->opts, w, err);
}
