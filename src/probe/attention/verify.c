/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification of probe attention: two exact passes that every element of O enters, sampled rows of the
 * case's own data against double precision, and what timing left against the accepted result, bit for bit.
 * Every O is poisoned before it is looked at next, so a kernel that returns at once leaves poison.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "probe/attention/attention.h"
#include "probe/attention/number.h"
#include "probe/cpu.h"

static enum status mismatch(const struct attention *a, const struct wrong *w, const char *pass,
			    struct error *err)
{
	char text[96];

	attention_describe(&a->c.problem, text, sizeof(text));
	return error_set_cause(err, STATUS_MISMATCH, w->nan ? CAUSE_NAN : CAUSE_WRONG_RESULT,
			       "attention %s: %s: %" PRIu64 " of %" PRIu64
			       " elements checked are wrong, the first at %s: expected %.9g, found %.9g",
			       text, pass, w->count, w->checked, w->place, w->expected, w->found);
}

void attention_note(const struct attention_problem *p, struct wrong *w, uint32_t b, uint32_t h, uint32_t row,
		    int d, double expected, double found)
{
	if (isnan(found) || (isinf(found) && !isinf(expected)))
		w->nan = true;
	if (w->count++)
		return;
	w->expected = expected;
	w->found = found;
	w->first_index =
		(((uint64_t)b * p->heads + h) * p->q_len + row) * p->head_dim + (d > 0 ? (unsigned)d : 0);
	if (d < 0)
		snprintf(w->place, sizeof(w->place), "batch %u head %u row %u, its log-sum-exp", b, h, row);
	else
		snprintf(w->place, sizeof(w->place), "batch %u head %u row %u column %d", b, h, row, d);
}

/* -- one set's O and log-sum-exp, read back -- */

struct output {
	void *o;
	float *lse;
};

static void output_free(struct output *out)
{
	free(out->o);
	free(out->lse);
	*out = (struct output){0};
}

static enum status output_read(struct attention *a, unsigned set, struct output *out, struct error *err)
{
	const struct attention_problem *p = &a->c.problem;
	enum status st = STATUS_OK;

	if (!out->o)
		out->o = malloc(attention_tensor_bytes(p, ATTENTION_O));
	if (!out->lse)
		out->lse = malloc(attention_tensor_bytes(p, ATTENTION_LSE));
	if (!out->o || !out->lse)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "attention: no room to verify");
	st = a->access->read(a, set, ATTENTION_O, out->o, err);
	return st ? st : a->access->read(a, set, ATTENTION_LSE, out->lse, err);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, uint64_t size)
{
	const unsigned char *p = data;
	uint64_t word;

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = mix(hash, word);
	}
	word = 0;
	memcpy(&word, p, size);
	return mix(hash, word);
}

/* Rows that sequences do not have are nobody's: only rows that are there count. */
static uint64_t output_hash(const struct attention *a, const struct output *out)
{
	const struct attention_problem *p = &a->c.problem;
	uint64_t hash = hash_bytes(1, out->o, attention_tensor_bytes(p, ATTENTION_O));

	for (uint32_t b = 0; b < p->batch; b++)
		for (uint32_t h = 0; h < p->heads; h++)
			hash = hash_bytes(hash, out->lse + attention_tensor_at(p, ATTENTION_LSE, b, h, 0),
					  (uint64_t)attention_q_len(p, b) * sizeof(float));
	return hash;
}

/* -- passes -- */

static enum status check_exact(struct attention *a, enum attention_data data, const char *pass,
			       struct wrong *w, struct error *err)
{
	enum status st = attention_fill(a, data, err);

	if (!st)
		st = a->access->poison(a, err);
	if (!st)
		st = a->access->run(a, 0, err);
	if (!st)
		st = attention_check_exact(a, data, w, err);
	return !st && w->count ? mismatch(a, w, pass, err) : st;
}

/* The case's own data: sampled rows, and what set 0 then holds is what all sets are held to. */
static enum status check_random(struct attention *a, struct wrong *w, struct error *err)
{
	struct output out = {0};
	enum status st = attention_fill(a, a->data, err);

	if (!st)
		st = attention_reference(a, err);
	if (!st)
		st = a->access->poison(a, err);
	if (!st)
		st = a->access->run(a, 0, err);
	if (!st)
		st = output_read(a, 0, &out, err);
	if (!st)
		attention_check_samples(a, out.o, out.lse, w);
	if (!st)
		a->hash = output_hash(a, &out);
	output_free(&out);
	return !st && w->count ? mismatch(a, w, "random data", err) : st;
}

/* Two engines of right results differ by twice what one may err, where each row sampled tells what that is.
 */
struct apart {
	double o, lse;
};

static struct apart allowed_apart(const struct attention *a)
{
	struct apart most = {0};

	for (unsigned i = 0; i < a->sample_count; i++) {
		for (uint32_t d = 0; d < a->c.problem.head_dim; d++)
			most.o = fmax(most.o, 2 * a->sample[i].allowed[d]);
		most.lse = fmax(most.lse, 2 * a->sample[i].lse_allowed);
	}
	return most;
}

static void compare_row(const struct attention *a, const struct output *out, const struct output *right,
			struct apart most, uint32_t b, uint32_t h, uint32_t row, struct wrong *w)
{
	const struct attention_problem *p = &a->c.problem;
	uint64_t at = attention_tensor_at(p, ATTENTION_O, b, h, row) * attention_type_bytes(p->out_type);
	uint64_t line = attention_tensor_at(p, ATTENTION_LSE, b, h, row);
	float found[ATTENTION_HEAD_DIM_MAX], good[ATTENTION_HEAD_DIM_MAX];
	double apart = fabs((double)out->lse[line] - (double)right->lse[line]);

	attention_load(p->out_type, found, (const char *)out->o + at, p->head_dim);
	attention_load(p->out_type, good, (const char *)right->o + at, p->head_dim);
	for (uint32_t d = 0; d < p->head_dim; d++)
		if (!(fabs((double)found[d] - (double)good[d]) <= most.o))
			attention_note(p, w, b, h, row, (int)d, (double)good[d], (double)found[d]);
	if (!(apart <= most.lse) && memcmp(&out->lse[line], &right->lse[line], sizeof(float)) != 0)
		attention_note(p, w, b, h, row, -1, (double)right->lse[line], (double)out->lse[line]);
}

/* A set with other bits than the accepted ones: an engine that is not the same each time, or a fault that
 * began since. Held against the sampled rows, and every element against a run of now, which is held to them
 * too; and the exact passes are due again. */
static enum status check_other(struct attention *a, const struct output *out, struct wrong *w,
			       struct error *err)
{
	const struct attention_problem *p = &a->c.problem;
	struct apart most = allowed_apart(a);
	struct output right = {0};
	enum status st = a->access->run(a, 0, err);

	a->exact_done = false;
	attention_check_samples(a, out->o, out->lse, w);
	if (!st)
		st = output_read(a, 0, &right, err);
	if (!st)
		attention_check_samples(a, right.o, right.lse, w);
	for (uint32_t b = 0; !st && b < p->batch; b++)
		for (uint32_t h = 0; h < p->heads; h++)
			for (uint32_t row = 0; row < attention_q_len(p, b); row++)
				compare_row(a, out, &right, most, b, h, row, w);
	output_free(&right);
	w->checked += w->total;
	return st;
}

static enum status check_left(struct attention *a, struct wrong *w, struct error *err)
{
	struct output out = {0};
	enum status st = STATUS_OK;

	for (unsigned set = 0; !st && set < a->sets; set++) {
		if (!(a->written >> set & 1))
			continue;
		st = output_read(a, set, &out, err);
		if (!st && output_hash(a, &out) == a->hash)
			w->checked += w->total;
		else if (!st)
			st = check_other(a, &out, w, err);
	}
	output_free(&out);
	return !st && w->count ? mismatch(a, w, "after timing", err) : st;
}

static double rows_of(const struct attention_problem *p)
{
	return p->q_starts ? (double)p->q_starts[p->batch] : (double)p->batch * p->q_len;
}

static enum status verify(struct attention *a, struct wrong *wrong, struct error *err)
{
	const struct attention_problem *p = &a->c.problem;
	enum status st = STATUS_OK;

	*wrong = (struct wrong){.total = (uint64_t)(rows_of(p) * p->heads * p->head_dim)};
	if (a->ready && a->written)
		st = check_left(a, wrong, err);
	if (!st && !a->exact_done) {
		st = check_exact(a, ATTENTION_DATA_MEAN, "means of values", wrong, err);
		if (!st && attention_can_select(p))
			st = check_exact(a, ATTENTION_DATA_SELECT, "one key each", wrong, err);
		a->exact_done = !st;
		if (!st)
			st = check_random(a, wrong, err);
	}
	if (st)
		return st;
	if (wrong->checked > wrong->total)
		wrong->checked = wrong->total;
	a->ready = true;
	a->written = 0;
	return a->access->poison(a, err);
}

enum status attention_verify(void *state, struct wrong *wrong, struct error *err)
{
	struct attention *a = state;
	struct cpu_pool *own = NULL;
	enum status st = a->pool ? STATUS_OK : cpu_pool_usable(&own, err);

	if (st)
		return st;
	if (own)
		a->pool = own;
	st = verify(a, wrong, err);
	if (own)
		a->pool = NULL;
	cpu_pool_destroy(&own);
	return st;
}
