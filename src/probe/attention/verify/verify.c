/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification of probe attention. Two exact passes cover every output element. Sampled rows (backward: whole
 * heads) of the case's own data are compared with double precision. The output of the timed iterations is
 * compared with the accepted result, bit for bit. Outputs are poisoned before their next use, so a kernel
 * that returns at once leaves poison.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "probe/attention/attention.h"
#include "probe/attention/element_types.h"
#include "probe/shared/cpu.h"
#include "probe/shared/hash.h"

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

void attention_note(const struct attention_problem *p, struct wrong *w, enum attention_tensor t, uint32_t b,
		    uint32_t h, uint32_t row, uint32_t d, double expected, double found)
{
	uint32_t heads = attention_tensor_heads(p, t), rows = t >= ATTENTION_D_K ? p->kv_len : p->q_len;

	if (isnan(found) || (isinf(found) && !isinf(expected)))
		w->nan = true;
	if (w->count++)
		return;
	w->expected = expected;
	w->found = found;
	w->first_index = (((uint64_t)b * heads + h) * rows + row) * p->head_dim + d;
	if (t == ATTENTION_LSE)
		snprintf(w->place, sizeof(w->place), "batch %u head %u row %u, its log-sum-exp", b, h, row);
	else
		snprintf(w->place, sizeof(w->place), "%s%sbatch %u head %u row %u column %u",
			 t == ATTENTION_O ? "" : attention_tensor_name(t), t == ATTENTION_O ? "" : " ", b, h,
			 row, d);
}

static void wrong_add(struct wrong *to, const struct wrong *from)
{
	uint64_t checked = to->checked + from->checked, count = to->count + from->count, total = to->total;
	bool nan = to->nan || from->nan;

	if (!to->count && from->count)
		*to = *from;
	to->checked = checked;
	to->count = count;
	to->total = total;
	to->nan = nan;
}

enum status attention_check_threads(struct cpu_pool *pool, void (*work)(void *arg, unsigned thread),
				    void *arg, const struct wrong *part, const bool *room,
				    struct wrong *wrong, struct error *err)
{
	cpu_pool_run(pool, work, arg);
	for (unsigned i = 0; i < cpu_pool_count(pool); i++) {
		if (!room[i])
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "attention: not enough memory to verify");
		wrong_add(wrong, &part[i]);
	}
	return STATUS_OK;
}

/* -- output of one set, read back -- */

struct output {
	void *t[ATTENTION_TENSORS]; /* NULL: not written by the pass */
};

static void output_free(struct output *out)
{
	for (int t = 0; t < ATTENTION_TENSORS; t++)
		free(out->t[t]);
	*out = (struct output){0};
}

static enum status output_read(struct attention *a, unsigned set, struct output *out, struct error *err)
{
	const struct attention_problem *p = &a->c.problem;
	enum status st = STATUS_OK;

	for (enum attention_tensor t = 0; !st && t < ATTENTION_TENSORS; t++) {
		if (!attention_writes(&a->c, t))
			continue;
		if (!out->t[t])
			out->t[t] = malloc(attention_tensor_bytes(p, t));
		if (!out->t[t])
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "attention: not enough memory to verify");
		st = a->access->read(a, set, t, out->t[t], err);
	}
	return st;
}

/* Four independent chains, because a single chain waits for its multiplications. */
static uint64_t hash_bytes(uint64_t hash, const void *data, uint64_t size)
{
	enum { CHAINS = 4 };
	const unsigned char *p = data;
	uint64_t chain[CHAINS] = {hash, 1, 2, 3}, word[CHAINS];

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(word, p, sizeof(word));
		for (int i = 0; i < CHAINS; i++)
			chain[i] = hash_word(chain[i], word[i]);
	}
	memset(word, 0, sizeof(word));
	memcpy(word, p, size);
	for (int i = 0; i < CHAINS; i++)
		hash = hash_word(hash_word(hash, chain[i]), word[i]);
	return hash;
}

/* Hashes only rows that exist: shorter sequences leave rows that belong to none. */
static uint64_t output_hash(const struct attention *a, const struct output *out)
{
	const struct attention_problem *p = &a->c.problem;
	uint64_t hash = 1;

	for (enum attention_tensor t = 0; t < ATTENTION_TENSORS; t++)
		if (out->t[t] && t != ATTENTION_LSE)
			hash = hash_bytes(hash, out->t[t], attention_tensor_bytes(p, t));
	for (uint32_t b = 0; out->t[ATTENTION_LSE] && b < p->batch; b++)
		for (uint32_t h = 0; h < p->heads; h++)
			hash = hash_bytes(hash,
					  (const float *)out->t[ATTENTION_LSE] +
						  attention_tensor_at(p, ATTENTION_LSE, b, h, 0),
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
		st = a->c.backward ? attention_check_gradients(a, data, w, err)
				   : attention_check_exact(a, data, w, err);
	return !st && w->count ? mismatch(a, w, pass, err) : st;
}

static enum status reference(struct attention *a, struct error *err)
{
	return a->c.backward ? attention_gradient_reference(a, err) : attention_reference(a, err);
}

static void check_samples(struct attention *a, const struct output *out, struct wrong *w)
{
	if (a->c.backward)
		attention_check_gradient_heads(a, out->t, w);
	else
		attention_check_samples(a, out->t[ATTENTION_O], out->t[ATTENTION_LSE], w);
}

/* Checks the case's own data: sampled rows of set 0. Then set 0's hash becomes the one that all sets must
 * have. */
static enum status check_random(struct attention *a, struct wrong *w, struct error *err)
{
	struct output out = {0};
	enum status st = attention_fill(a, a->data, err);

	if (!st)
		st = reference(a, err);
	if (!st)
		st = a->access->poison(a, err);
	if (!st)
		st = a->access->run(a, 0, err);
	if (!st)
		st = output_read(a, 0, &out, err);
	if (!st)
		check_samples(a, &out, w);
	if (!st)
		a->hash = output_hash(a, &out);
	output_free(&out);
	return !st && w->count ? mismatch(a, w, "random data", err) : st;
}

/* Two correct results differ by at most twice the allowed error of one. The allowed error is the largest of
 * the sampled rows. */
static double allowed_apart(const struct attention *a, enum attention_tensor t)
{
	double most = 0;

	if (a->c.backward)
		return attention_gradient_apart(a, t);
	for (unsigned i = 0; i < a->sample_count; i++) {
		if (t == ATTENTION_LSE)
			most = fmax(most, 2 * a->sample[i].lse_allowed);
		for (uint32_t d = 0; t == ATTENTION_O && d < a->c.problem.head_dim; d++)
			most = fmax(most, 2 * a->sample[i].allowed[d]);
	}
	return most;
}

/* Elements of one row, as numbers. */
static uint32_t load_row(const struct attention_problem *p, const struct output *out, enum attention_tensor t,
			 uint64_t at, float *to)
{
	if (t == ATTENTION_LSE) {
		*to = ((const float *)out->t[t])[at];
		return 1;
	}
	attention_load(attention_tensor_type(p, t), to,
		       (const char *)out->t[t] + at * attention_type_bytes(attention_tensor_type(p, t)),
		       p->head_dim);
	return p->head_dim;
}

static void compare_tensor(const struct attention *a, const struct output *out, const struct output *right,
			   enum attention_tensor t, struct wrong *w)
{
	const struct attention_problem *p = &a->c.problem;
	float found[ATTENTION_HEAD_DIM_MAX], good[ATTENTION_HEAD_DIM_MAX];
	double most = allowed_apart(a, t);

	for (uint32_t b = 0; b < p->batch; b++)
		for (uint32_t h = 0; h < attention_tensor_heads(p, t); h++)
			for (uint32_t row = 0; row < attention_tensor_rows(p, t, b); row++) {
				uint64_t at = attention_tensor_at(p, t, b, h, row);
				uint32_t count = load_row(p, out, t, at, found);

				load_row(p, right, t, at, good);
				if (t == ATTENTION_LSE && isinf(good[0]) &&
				    !memcmp(found, good, sizeof(*good)))
					continue; /* a row without kept pairs */
				for (uint32_t d = 0; d < count; d++)
					if (!(fabs((double)found[d] - (double)good[d]) <= most))
						attention_note(p, w, t, b, h, row, d, (double)good[d],
							       (double)found[d]);
			}
}

/* Checks a set whose bits differ from the accepted ones: the engine is not deterministic, or a fault began
 * later. Its sampled rows are compared with the reference. Every element is compared with a new run, whose
 * sampled rows are checked too. The exact passes are repeated. */
static enum status check_other(struct attention *a, const struct output *out, struct wrong *w,
			       struct error *err)
{
	struct output right = {0};
	enum status st = a->access->run(a, 0, err);

	a->exact_done = false;
	check_samples(a, out, w);
	if (!st)
		st = output_read(a, 0, &right, err);
	if (!st)
		check_samples(a, &right, w);
	for (enum attention_tensor t = 0; !st && t < ATTENTION_TENSORS; t++)
		if (out->t[t])
			compare_tensor(a, out, &right, t, w);
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

/* Number of output elements of the pass, without the log-sum-exp. */
static uint64_t elements_of(const struct attention_case *c)
{
	uint64_t count = 0;

	for (enum attention_tensor t = 0; t < ATTENTION_TENSORS; t++)
		for (uint32_t b = 0; attention_writes(c, t) && t != ATTENTION_LSE && b < c->problem.batch;
		     b++)
			count += (uint64_t)attention_tensor_rows(&c->problem, t, b) *
				 attention_tensor_heads(&c->problem, t) * c->problem.head_dim;
	return count;
}

static enum status check_passes(struct attention *a, struct wrong *w, struct error *err)
{
	enum status st = check_exact(a, ATTENTION_DATA_MEAN, "exact pass with means of V", w, err);

	if (!st && a->c.backward)
		st = check_exact(a, ATTENTION_DATA_KEYLESS, "exact pass with K = 0", w, err);
	else if (!st && attention_can_select(&a->c.problem))
		st = check_exact(a, ATTENTION_DATA_SELECT, "exact pass with one key per query", w, err);
	a->exact_done = !st;
	return st ? st : check_random(a, w, err);
}

static enum status verify(struct attention *a, struct wrong *wrong, struct error *err)
{
	enum status st = STATUS_OK;

	*wrong = (struct wrong){.total = elements_of(&a->c)};
	if (a->ready && a->written)
		st = check_left(a, wrong, err);
	if (!st && !a->exact_done)
		st = check_passes(a, wrong, err);
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
