/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on the device: their lists, their slices, and the wait for their results. */
#include <string.h>
#include "engine/internal.h"
#include "engine/step/token_mask.h"

static enum status set_history(struct engine *e, const struct schedule_entry *entry, struct error *err)
{
	const struct running *run = &e->running[entry->number];
	const struct sample_history history = {.place = (int32_t)entry->place,
					       .id = entry->tokens,
					       .prompt = run->prompt,
					       .count = entry->known};

	return entry->begins && running_counts(run) ? paged_step_history(e->loaded.step, &history, err)
						    : STATUS_OK;
}

/* Number, from 0, of the token that an entry samples. */
static int64_t token_index(const struct running *run, const struct schedule_entry *entry)
{
	return entry->first + entry->rows - run->prompt;
}

/* The rows of an entry that need logits, in their order. */
static enum status add_sampling(struct engine *e, const struct schedule_entry *entry, struct error *err)
{
	const struct running *run = &e->running[entry->number];
	const int32_t scored = entry->logits - entry->samples;

	for (int32_t i = 0; i < scored; i++)
		sampling_lists_score(e->sampling, run,
				     entry->tokens[entry->first + entry->logits_first + i + 1]);
	if (schedule_outputs(entry) > entry->logits)
		sampling_lists_probe(e->sampling);
	if (!entry->samples)
		return STATUS_OK;
	return sampling_lists_add(e->sampling, run, (int32_t)entry->place, token_index(run, entry), err);
}

static enum status add_entry(struct engine *e, const struct schedule_entry *entry, struct error *err)
{
	const struct row_sequence s = {.token = entry->tokens,
				       .known = entry->known,
				       .first = entry->first,
				       .rows = entry->rows,
				       .outputs = schedule_outputs(entry),
				       .place = (int32_t)entry->place,
				       .adapter = e->running[entry->number].adapter,
				       .page = entry->pages};
	enum status st = set_history(e, entry, err);

	row_lists_add(e->rows, &s);
	return st ? st : add_sampling(e, entry, err);
}

/* The number of rows or outputs that the device computes for `count`. */
static int64_t padded(const struct engine *e, int64_t count, int64_t most)
{
	return e->loaded.back.kind == BACKEND_GPU ? row_lists_ladder(count, most) : count;
}

/* Builds all lists of a plan. The scheduler lends the tokens only until it is called again. */
static enum status make_lists(struct engine *e, const struct schedule_plan *plan, struct paged_rows *rows,
			      struct error *err)
{
	const struct paged_limits *most = &e->loaded.most;
	enum status st = STATUS_OK;

	row_lists_clear(e->rows);
	sampling_lists_clear(e->sampling);
	for (int32_t i = 0; !st && i < plan->count; i++)
		st = add_entry(e, &plan->entries[i], err);
	if (st)
		return st;
	*rows = row_lists_end(e->rows, padded(e, row_lists_rows(e->rows), most->rows),
			      padded(e, row_lists_outputs(e->rows), most->outputs));
	/* without adapters, a GPU's GEMMs may round differently */
	rows->adapted |= e->options.load.deterministic;
	return STATUS_OK;
}

/* A GPU's steps without prompts are launched as graphs, so they have no slices. */
static int64_t slice_of(const struct engine *e, const struct schedule_plan *plan)
{
	const int64_t layers = e->loaded.weights.shape.layers;

	return e->loaded.back.kind == BACKEND_GPU && plan->rows == plan->decodes
		       ? layers
		       : step_cost_slice(plan->predicted_ns, e->slice_ns, layers);
}

/* Enqueues the forward pass, or its first slice. */
static enum status enqueue_forward(struct engine *e, struct flight *f, struct error *err)
{
	struct paged_step *step = e->loaded.step;
	const int64_t layers = e->loaded.weights.shape.layers;
	struct paged_rows rows;
	enum status st = make_lists(e, f->plan, &rows, err);

	if (st)
		return st;
	f->slice = slice_of(e, f->plan);
	if (f->slice == layers)
		return paged_step_forward(step, &rows, err);
	st = paged_step_begin(step, &rows, err);
	return st ? st : paged_step_advance(step, f->slice, &f->left, err);
}

/* A state that exceeds its limits allows no token, so its request ends and the others go on. */
static void fill_mask(const struct engine *e, struct running *run, int64_t index, uint32_t *mask)
{
	const size_t words = grammar_vocab_words(e->options.vocab);
	struct error why = {0};

	run->limited = grammar_mask(run->grammar, mask, &why);
	if (run->limited)
		memset(mask, 0, words * sizeof(*mask));
	run->stuck = !token_mask_any(mask, words);
	token_mask_narrow(mask, words, run, index);
}

/* Fills the masks of the rows whose request has a grammar. Every token before is known by now. */
static enum status add_masks(struct engine *e, const struct schedule_plan *plan, struct error *err)
{
	enum status st = STATUS_OK;
	int64_t row = 0;

	for (int32_t i = 0; !st && i < plan->count; i++) {
		const struct schedule_entry *entry = &plan->entries[i];
		struct running *run = &e->running[entry->number];
		uint32_t *mask;

		row += schedule_outputs(entry);
		if (!run->grammar || !entry->samples)
			continue;
		mask = sampling_lists_mask(e->sampling, row - 1);
		if (!mask)
			st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					     "cannot allocate the masks of grammars");
		else
			fill_mask(e, run, token_index(run, entry), mask);
	}
	return st;
}

static enum status enqueue_sampling(struct engine *e, struct flight *f, struct error *err)
{
	enum status st = add_masks(e, f->plan, err);
	struct sample_lists lists;

	if (st)
		return st;
	lists = sampling_lists_end(e->sampling,
				   padded(e, row_lists_outputs(e->rows), e->loaded.most.outputs));

	return paged_step_sample(e->loaded.step, &lists, &f->turn, err);
}

/* When the device could begin with a step. */
static uint64_t begun_ns(const struct engine *e, const struct flight *f)
{
	return f->begun_ns > e->fetched_ns ? f->begun_ns : e->fetched_ns;
}

/* Notes that a step has ended. */
static void note_end(struct engine *e, const struct flight *f)
{
	const uint64_t now = now_ns();

	e->step_s = (double)(now - begun_ns(e, f)) * 1e-9;
	e->busy_s += e->step_s;
	e->fetched_ns = now;
}

enum status dispatch_fetch(struct engine *e, struct error *err)
{
	const struct flight f = e->flight;
	const struct sample_result *r = NULL;
	enum status st = paged_step_results(e->loaded.step, f.turn, &r, err);

	e->flying = false;
	if (st)
		return st;
	note_end(e, &f);
	step_cost_measured(&e->cost, &f.predicted, e->step_s * 1e9);
	return results_settle(e, f.plan, r, err);
}

/* Completes the step. A device that does not work beside the host has its results now. */
static enum status complete(struct engine *e, struct error *err)
{
	enum status st = enqueue_sampling(e, &e->flight, err);

	return st || e->overlaps ? st : dispatch_fetch(e, err);
}

static void tell_planned(const struct engine *e, const struct schedule_plan *plan)
{
	if (e->planned)
		e->planned(e->planned_arg, plan->predicted_ns * 1e-9);
}

/* The results of the step before are fetched between the two parts of a step. The device computes the first
 * part meanwhile, and grammar masks know every token. */
enum status dispatch_begin(struct engine *e, const struct schedule_plan *plan, struct error *err)
{
	struct flight f = {.plan = plan,
			   .predicted =
				   step_cost_parts(&e->cost, plan->predicted_ns, plan->rows > plan->decodes),
			   .begun_ns = now_ns()};
	enum status st;

	tell_planned(e, plan);
	st = enqueue_forward(e, &f, err);
	if (!st && e->flying)
		st = dispatch_fetch(e, err);
	if (st)
		return st;
	e->flight = f;
	e->flying = true;
	return f.left ? STATUS_OK : complete(e, err);
}

bool dispatch_is_open(const struct engine *e)
{
	return e->flying && e->flight.left;
}

/* Ends the open step, whose requests have all ended. Pages that it has written are not in the cache. */
static enum status stop_open(struct engine *e, struct error *err)
{
	const struct flight f = e->flight;
	enum status st = paged_step_stop(e->loaded.step, err);

	e->flying = false;
	note_end(e, &f);
	return st ? st : results_drop(e, f.plan, err);
}

enum status dispatch_continue(struct engine *e, struct error *err)
{
	struct flight *f = &e->flight;
	const bool wanted = schedule_is_wanted(e->schedule, now_ns());
	enum status st = outbox_pass(e, err);

	if (st)
		return st;
	if (!wanted)
		return stop_open(e, err);
	tell_planned(e, f->plan);
	st = paged_step_advance(e->loaded.step, f->slice, &f->left, err);
	return st || f->left ? st : complete(e, err);
}

uint64_t engine_hold(const struct engine *e)
{
	const struct flight *f = &e->flight;
	const int64_t layers = e->loaded.weights.shape.layers;

	/* a CPU computes in engine_step */
	if (!e->flying || !e->overlaps)
		return 0;
	return begun_ns(e, f) + step_cost_hold_ns(&e->cost, &f->predicted,
						  step_cost_share(layers, layers - f->left, f->slice));
}
