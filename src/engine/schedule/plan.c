/* SPDX-License-Identifier: Apache-2.0 */
/* A step: pages for all running requests in their order, then admissions, then rows. */
#include "engine/schedule/state.h"

/* Positions that can be planned now. The last token of a text needs no keys and values. */
static int32_t rows_left(const struct request *r)
{
	int32_t end = r->score_only ? r->prompt : r->limit - 1;

	if (r->variable)
		return 0;
	return (r->planned_known < end ? r->planned_known : end) - r->planned;
}

static bool decodes(const struct request *r)
{
	return rows_left(r) == 1 && r->planned >= r->prompt;
}

/* Gives the i-th running request one more page. A request that comes strictly later loses its pages if need
 * be. `claims`: draining pages that earlier requests wait for. */
static bool add_page(struct schedule *s, int32_t i, int64_t *claims, uint64_t now)
{
	struct request *r = s->requests + s->order[i];

	for (;;) {
		uint32_t page = pages_take(s->pool);

		if (page) {
			table_of(s, r)[r->page_count++] = page;
			return true;
		}
		if (pages_counts(s->pool).draining > *claims) {
			++*claims;
			return false;
		}
		if (i == s->running - 1)
			return false;
		request_preempt(s, s->order[s->running - 1], now);
	}
}

static void add_pages(struct schedule *s, uint64_t now)
{
	int64_t claims = 0;

	for (int32_t i = 0; i < s->running; i++) {
		struct request *r = s->requests + s->order[i];
		int32_t left = rows_left(r);

		r->starved = left > 0 && r->page_count < pages_for(s, r->planned + left) &&
			     !add_page(s, i, &claims, now);
	}
}

/* Logits of `rows` rows from the first planned position on. */
static int32_t logits_of(const struct request *r, int32_t rows, int32_t *first)
{
	int32_t begin = r->planned, end = begin + rows, from = end;
	bool samples = end == r->planned_known && !r->score_only;

	if (r->scores && r->planned_scored < r->prompt - 1) {
		from = r->planned_scored > begin ? r->planned_scored : begin;
		if (end == r->prompt && !samples)
			end--;
	} else if (samples) {
		from = end - 1;
	}
	if (from > end)
		from = end;
	*first = from - begin;
	return end - from;
}

/* Predicted time of these rows alone. */
static double time_of(const struct schedule_cost *c, int32_t first, int32_t rows, int32_t logits)
{
	double depth = (double)rows * first + (double)rows * (rows - 1) / 2;

	return rows * c->row_ns + depth * c->depth_ns + logits * c->logits_ns;
}

/* Positions that the entry's tokens may reach; more than one only if several tokens are asked for at once. */
static int32_t most_of(struct schedule *s, struct request *r, int32_t at_once)
{
	int32_t most = 1;

	if (at_once > r->limit - r->planned_known)
		at_once = r->limit - r->planned_known;
	while (most < at_once) {
		if (r->planned + most >= r->page_count * s->page_tokens) {
			uint32_t page = pages_take(s->pool);

			if (!page)
				break;
			table_of(s, r)[r->page_count++] = page;
		}
		most++;
	}
	return most;
}

static void add_entry(struct schedule *s, struct schedule_plan *plan, uint32_t number, int32_t rows,
		      int32_t at_once)
{
	struct request *r = s->requests + number;
	struct schedule_entry *e = (struct schedule_entry *)plan->entries + plan->count++;
	int32_t logits_first, logits = logits_of(r, rows, &logits_first);

	*e = (struct schedule_entry){
		.id = r->id,
		.number = number,
		.place = r->place,
		.begins = r->begins,
		.decodes = decodes(r),
		.first = r->planned,
		.rows = rows,
		.logits_first = logits_first,
		.logits = logits,
		.samples = r->planned + rows == r->planned_known && !r->score_only,
		.tokens = r->tokens,
		.known = r->known,
	};
	e->most = !e->samples ? 0 : e->decodes ? most_of(s, r, at_once) : 1;
	e->pages = table_of(s, r);
	e->page_count = pages_for(s, r->planned + (e->most > 1 ? e->most : rows));
	e->pages_from = r->sent < e->page_count ? r->sent : e->page_count;
	plan->rows += rows;
	plan->logits += logits;
	plan->outputs += schedule_outputs(e);
	plan->decodes += e->decodes;
	plan->predicted_ns += time_of(&s->options.cost, e->first, rows, logits);
	r->begins = false;
	r->sent = e->page_count;
	r->planned += e->most > 1 ? e->most : rows;
	r->planned_known += e->most;
	r->variable = e->most > 1;
	if (r->scores && r->planned > r->planned_scored)
		r->planned_scored = r->planned < r->prompt - 1 ? r->planned : r->prompt - 1;
	r->in_flight++;
	r->step = plan->step;
}

/* The largest piece of at most `most` rows that fits into the time. */
static int32_t rows_within(const struct schedule *s, const struct request *r, double time, int32_t most)
{
	int32_t low = 0, high = most, first;

	while (low < high) {
		int32_t rows = low + (high - low + 1) / 2;

		if (time_of(&s->options.cost, r->planned, rows, logits_of(r, rows, &first)) <= time)
			low = rows;
		else
			high = rows - 1;
	}
	return low;
}

/* A piece of `rows` of the `left` rows that ends at the end of a page and leaves no tiny piece behind. 0 if
 * there is none, unless the piece is `needed`. */
static int32_t cut_piece(const struct schedule *s, const struct request *r, int32_t rows, int32_t left,
			 bool needed)
{
	int32_t least = s->options.rows_least, page = s->page_tokens;
	int32_t whole = (r->planned + rows) / page * page - r->planned, cut = whole;

	if (left - cut < least)
		cut -= pages_for(s, least - (left - cut)) * page;
	if (cut >= least)
		return cut;
	if (!needed)
		return 0;
	return whole > 0 ? whole : rows;
}

/* Rows of a prompt, in the time that is left. The first piece of a step is planned even if there is no time.
 */
static int32_t prefill_rows(const struct schedule *s, const struct request *r,
			    const struct schedule_plan *plan, double budget, int32_t rows_most,
			    bool first_piece)
{
	int32_t left = rows_left(r), rows, most = rows_most - plan->rows;
	int32_t logits = s->options.logits_most - plan->outputs;
	bool scoring = r->scores && r->planned_scored < r->prompt - 1;

	if (most > left)
		most = left;
	if (scoring && r->planned_scored > r->planned)
		logits += r->planned_scored - r->planned;
	if (scoring && most > logits)
		most = logits;
	if (logits < 1 || most < 1)
		return 0;
	rows = rows_within(s, r, budget - plan->predicted_ns, most);
	if (first_piece && rows < s->options.rows_least)
		rows = most < s->options.rows_least ? most : s->options.rows_least;
	if (!rows || rows == left)
		return rows;
	return cut_piece(s, r, rows, left, first_piece);
}

/* Rows that running requests could compute now. */
struct work {
	int32_t decode_rows;
	int64_t prompt_rows;
	int32_t prompts; /* that they belong to */
};

static struct work work_of(const struct schedule *s)
{
	struct work w = {0};

	for (int32_t i = 0; i < s->running; i++) {
		const struct request *r = s->requests + s->order[i];
		const int32_t rows = r->starved ? 0 : rows_left(r);

		if (rows > 0 && decodes(r)) {
			w.decode_rows++;
		} else {
			w.prompt_rows += rows;
			w.prompts += rows > 0;
		}
	}
	return w;
}

/* Most rows of a step with `decode_rows` and prompts, if there is no backlog. */
static int32_t rows_shared(const struct schedule *s, int32_t decode_rows)
{
	const struct schedule_options *o = &s->options;
	const int32_t wanted = o->mixed_prompt_rows ? o->mixed_prompt_rows : o->mixed_rows / 2;
	const int32_t prompts = decode_rows > o->mixed_few ? wanted : 0;
	const int32_t least = o->rows_least > prompts ? o->rows_least : prompts;
	const int64_t together = o->rows_together ? o->rows_together : 1;
	int64_t rows = o->mixed_rows;

	if (rows < (int64_t)decode_rows + least)
		rows = ((int64_t)decode_rows + least + together - 1) / together * together;
	return rows < o->rows_most ? (int32_t)rows : o->rows_most;
}

static void add_decode_rows(struct schedule *s, struct schedule_plan *plan, int32_t at_once)
{
	for (int32_t i = 0; i < s->running; i++) {
		const struct request *r = s->requests + s->order[i];

		if (!r->starved && decodes(r))
			add_entry(s, plan, s->order[i], 1, at_once);
	}
}

static void add_prompt_rows(struct schedule *s, struct schedule_plan *plan, double budget, int32_t rows_most)
{
	bool first_piece = true;

	for (int32_t i = 0; i < s->running && plan->rows < rows_most; i++) {
		const struct request *r = s->requests + s->order[i];
		int32_t rows;

		if (r->starved || r->step == plan->step || rows_left(r) < 1 || decodes(r))
			continue;
		rows = prefill_rows(s, r, plan, budget, rows_most, first_piece);
		if (!rows)
			continue;
		add_entry(s, plan, s->order[i], rows, 1);
		first_piece = false;
	}
}

/* Several prompts with many rows. A lone prompt is no backlog: nobody waits behind it, and requests that
 * decode or come during its steps are not to wait long. */
static bool is_backlog(const struct schedule *s, const struct work *w)
{
	const struct schedule_options *o = &s->options;
	const bool spent = w->decode_rows && s->backlog_saved < o->backlog_every;
	const int64_t rows = o->backlog_rows ? o->backlog_rows : 2 * (int64_t)rows_shared(s, w->decode_rows);
	const int64_t least = (spent ? 2 : 1) * rows;

	return o->mixed_rows && w->prompts > 1 && w->prompt_rows > least;
}

/* Each step beside decoding requests saves a part of the next step with a backlog. */
static void count_step(struct schedule *s, bool backlog)
{
	const int64_t every = s->options.backlog_every, most = every * BACKLOGS_SAVED;

	s->backlog_saved += s->backlog_saved < most;
	if (backlog)
		s->backlog_saved = s->backlog_saved > every ? s->backlog_saved - every : 0;
}

static void fill(struct schedule *s, struct schedule_plan *plan, int32_t at_once)
{
	const struct work w = work_of(s);
	const struct schedule_options *o = &s->options;
	const bool backlog = is_backlog(s, &w), mixed = w.decode_rows && o->mixed_rows;
	double budget = w.decode_rows ? o->budget_ns : o->budget_idle_ns;

	if (backlog && o->budget_backlog_ns > budget)
		budget = o->budget_backlog_ns;
	if (w.decode_rows)
		count_step(s, backlog);
	add_decode_rows(s, plan, at_once);
	add_prompt_rows(s, plan, budget, mixed && !backlog ? rows_shared(s, plan->rows) : o->rows_most);
}

const struct schedule_plan *schedule_plan(struct schedule *s, uint64_t now, int32_t at_once)
{
	struct schedule_plan *plan = s->plans + (s->step + 1) % s->options.plans_most;

	request_expire(s, now);
	queue_age(s, now);
	if (s->in_flight == s->options.plans_most)
		return NULL;
	add_pages(s, now);
	schedule_admit(s, now);
	*plan = (struct schedule_plan){
		.step = s->step + 1,
		.entries = plan->entries,
		.predicted_ns = s->options.cost.step_ns,
	};
	if (at_once > SCHEDULE_AT_ONCE_MOST)
		at_once = SCHEDULE_AT_ONCE_MOST;
	if (s->running != 1 || s->waiting)
		at_once = 1;
	fill(s, plan, at_once);
	if (!plan->count)
		return NULL;
	s->step++;
	s->in_flight++;
	return plan;
}

bool schedule_is_wanted(struct schedule *s, uint64_t now)
{
	const struct schedule_plan *plan = s->plans + s->step % s->options.plans_most;

	request_expire(s, now);
	for (int32_t i = 0; s->in_flight && i < plan->count; i++)
		if (is_live(s->requests + plan->entries[i].number))
			return true;
	return false;
}

const struct schedule_plan *schedule_oldest(const struct schedule *s)
{
	return s->in_flight ? s->plans + (s->done + 1) % s->options.plans_most : NULL;
}
