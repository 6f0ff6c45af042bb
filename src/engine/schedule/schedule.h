/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of the engine. It decides which rows of which requests the next step computes, and in which
 * pages. It is a pure function from state to state, without device, clock and random numbers. Time is an
 * argument, in ns of one monotonic clock. The scheduler never looks at a token. It hands token ids to the
 * page pool and lends them to the step.
 *
 *   schedule_submit, schedule_cancel, schedule_finish     at any time
 *   plan = schedule_plan(s, now, 1)                       one step; plans_most of them may be in flight
 *   schedule_done(s, results, count, now)                 results of the oldest plan in flight
 *   while (schedule_event(s, &event))                     requests that have begun or ended
 *
 * Lengths. The *known* length of a request counts its prompt and the tokens from results. Its *planned*
 * length also counts the tokens that plans in flight will choose. Positions are planned and done in the same
 * way. So a plan may contain a row whose token id the host does not know yet. An earlier plan in flight
 * samples that token, and the device keeps it (`known` of struct schedule_entry).
 *
 * Ends. The first end wins: a request's later results are ignored, and its event ENDED comes exactly once.
 * Its place and the pages that plans in flight may still write stay reserved until those plans are done.
 *
 * Order. Priority first, then the client that has got the fewest tokens, then arrival. See
 * docs/explanation/design/engine.md, "Scheduler".
 *
 * After schedule_create only schedule_submit, and tokens beyond a request's first few hundred, allocate
 * memory. One thread at a time may call these functions.
 */
#ifndef ENGINE_SCHEDULE_SCHEDULE_H
#define ENGINE_SCHEDULE_SCHEDULE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "engine/message.h"
#include "engine/pages/pages.h"

enum {
	SCHEDULE_PLACES_MOST = 4096,
	SCHEDULE_REQUESTS_MOST = 1 << 20,
	SCHEDULE_PLANS_MOST = 64,
	SCHEDULE_AT_ONCE_MOST = 64, /* most tokens of one entry */
};

/* Predicted time of a step: step_ns, and for each row row_ns + depth_ns · position, and logits_ns for each
 * row of logits. The engine measures these when it starts and may correct them (schedule_set_cost). */
struct schedule_cost {
	double step_ns;
	double row_ns;	  /* GEMMs */
	double depth_ns;  /* attention: per row and position before it */
	double logits_ns; /* head and sampling, per row of logits */
};

struct schedule_options {
	struct pages_options pages; /* the scheduler creates and owns the pool */
	int32_t places;		    /* most running requests, 1 .. SCHEDULE_PLACES_MOST */
	int32_t requests_most;	    /* waiting and running, places .. SCHEDULE_REQUESTS_MOST */
	int32_t plans_most;	    /* plans in flight, 1 .. SCHEDULE_PLANS_MOST */
	int32_t rows_most;	    /* rows of a step: at least places + page_tokens */
	int32_t logits_most;	    /* rows of logits of a step: at least places + page_tokens */
	int64_t context;	    /* positions of a request at most, as the model allows; at least 2 */
	struct schedule_cost cost;
	/* Predicted time that a step may take while some request decodes, and while none does. Decode rows
	 * are planned even if they alone take longer, and so are `rows_least` prefill rows. */
	double budget_ns, budget_idle_ns;
	/* A backlog: several running requests together lack more than `backlog_rows` prompt rows. 0: twice
	 * the rows of a step without a backlog. Then budget_backlog_ns takes the place of both if it is
	 * larger. Longer steps answer more requests per second, and the last of a burst of prompts earlier.
	 */
	int32_t backlog_rows;
	double budget_backlog_ns;
	/* Beside decoding requests, such a step may come once in this many steps, so that few of their tokens
	 * wait for long steps. Up to 8 of them are saved for bursts. If none is left, a backlog needs twice
	 * as many rows. 0: no such limit */
	int32_t backlog_every;
	/* Most rows of a step with prompts beside decoding requests, unless there is a backlog. Decode rows
	 * count as well. 0: the budget is the only limit, and there is no backlog. */
	int32_t mixed_rows;
	/* Beside more than mixed_few decode rows, prompts have at least mixed_prompt_rows in such a step (0:
	 * half of mixed_rows). If decode rows leave less, the step is longer: all rows together, rounded up
	 * to a multiple of rows_together. */
	int32_t mixed_few, mixed_prompt_rows;
	int32_t rows_together; /* that a device computes in the time of one; 0: 1 */
	int32_t rows_least; /* prefill rows that every step with prefill work plans, and the shortest piece of
			     * a prompt that is cut; 1 .. rows_most. 0: page_tokens */
	int32_t bypass_most; /* requests that may be admitted before an earlier one that lacks pages; 0: none
			      */
	int32_t pages_ahead; /* pages that every running request could still take when a preempted one
			      * resumes. 0: 4 */
	uint64_t age_ns;     /* waiting time that raises a request by one priority; 0: never */
};

/* Sets mixed_rows, mixed_few, mixed_prompt_rows, rows_together and backlog_every for a GPU, within rows_most.
 * docs/explanation/design/engine.md, "Scheduler", says why. */
void schedule_mixed_on_gpu(struct schedule_options *o);

struct schedule;
/* BAD_INPUT if an option is out of range, and the message names it. NO_RESOURCE without memory. Owner:
 * caller, schedule_free. */
enum status schedule_create(struct schedule **out, const struct schedule_options *options, struct error *err);
void schedule_free(struct schedule **s); /* NULL-safe */
void schedule_set_cost(struct schedule *s, const struct schedule_cost *cost);

/* Takes a request. Its pointers are lent for the call. `adapter_load` is the generation of the adapter's
 * loading (struct pages_key), or 0 for the base model. *number is 0 .. requests_most - 1. No other request
 * has it before the event ENDED was taken out and the last plan with the request is done. So the caller can
 * keep its own state in an array. An error means that the request was not taken, and that no event follows.
 * The message is fit for the client. BAD_INPUT: the id is in use, a field is out of range, or prompt and
 * max_tokens do not fit into the context or the pool. NO_RESOURCE: requests_most requests are there already,
 * or there is no memory. */
enum status schedule_submit(struct schedule *s, const struct engine_request *request, uint64_t adapter_load,
			    uint64_t now, uint32_t *number, struct error *err);
/* Ends a request in any state with CANCELLED. False: no such request; it may have ended already. */
bool schedule_cancel(struct schedule *s, uint64_t id);
/* Ends a request with STOP: a stop string was found after its first `tokens` tokens. Later tokens do not
 * count. False as above. */
bool schedule_finish(struct schedule *s, uint64_t id, int64_t tokens);

/* Rows of one request in a step. The order of rows of the batch is the order of entries. */
struct schedule_entry {
	uint64_t id;
	uint32_t number; /* the request's, as schedule_submit gave it */
	uint32_t place;	 /* 0 .. places - 1, the request's own while it runs: device state of a sequence */
	bool begins;  /* the first entry since the request got this place: the device state must be set up */
	bool decodes; /* one row, whose token was sampled: its place in the list is before all prefill rows */
	int32_t first; /* position of the first row */
	int32_t rows;
	/* The `logits` rows from row first + logits_first on need logits; 0: none does. If `samples`, the
	 * last of them is the entry's last row, and chooses a token. The others are scored: the logits at
	 * position p give the log probability of the prompt's token p + 1. Each position is scored once, in
	 * order. */
	int32_t logits_first, logits;
	bool samples;
	/* Tokens that this entry may choose: 0 if it does not sample, else 1. If this is the only request and
	 * schedule_plan was asked for more, then more: positions first .. first + most - 1 have pages. */
	int32_t most;
	/* Ids of positions 0 .. known - 1. Ids of later positions were sampled by plans in flight, the last
	 * one by this place's previous entry. Lent until the next call of any function of this header. */
	const int32_t *tokens;
	int32_t known;
	/* Pages of positions 0 .. first + rows - 1 (or first + most - 1), in order. Elements before
	 * `pages_from` are as in this place's previous entry. Lent as `tokens`; each element that was in an
	 * entry stays valid on the device until that plan is done. */
	const uint32_t *pages;
	int32_t page_count, pages_from;
};

struct schedule_plan {
	uint64_t step;	      /* 1, 2, ..: one more than the previous plan's */
	int32_t count;	      /* entries, those that decode first; at least 1 */
	int32_t decodes;      /* entries that decode */
	int32_t rows, logits; /* of all entries */
	/* Rows of logits, and the last row of each entry that has none: it shows whether the hidden states
	 * are finite. At most logits_most. */
	int32_t outputs;
	double predicted_ns;
	const struct schedule_entry *entries; /* lent until this plan is done */
};

/* The entry's last `outputs` rows are those with logits, and its last row in any case. */
static inline int32_t schedule_outputs(const struct schedule_entry *e)
{
	return e->logits && e->logits_first + e->logits == e->rows ? e->logits : e->logits + 1;
}

/* Plans the next step. `at_once`: tokens that an entry may choose if its request is the only one and nothing
 * waits (a kernel that generates several tokens), else 1. An entry with most > 1 is not followed by another
 * of its request until it is done. NULL: there is nothing to compute now, or plans_most plans are in flight.
 * The plan is lent until it is done. */
const struct schedule_plan *schedule_plan(struct schedule *s, uint64_t now, int32_t at_once);
/* Whether some request of the newest plan in flight has not ended. Requests whose deadline is over end now.
 * If false, the plan's work can be stopped; schedule_done then takes any results for it. */
bool schedule_is_wanted(struct schedule *s, uint64_t now);
/* The oldest plan in flight; NULL: none. */
const struct schedule_plan *schedule_oldest(const struct schedule *s);

enum schedule_outcome {
	SCHEDULE_CONTINUES,
	SCHEDULE_STOPPED,   /* the last token of `tokens` ends the text: a stop id, or the grammar's end */
	SCHEDULE_FORBIDDEN, /* no token could be chosen: the request's bias forbids each allowed one */
	SCHEDULE_LIMITED,   /* no token could be chosen: the request's grammar exceeded a limit */
	SCHEDULE_FAILED,    /* no token could be chosen for another reason */
};

/* The result of one entry. */
struct schedule_result {
	/* Chosen ids in order, lent for the call. Their number is the entry's `most`, or 0 if it failed. An
	 * entry with most > 1 may have fewer, if it stopped or was interrupted. Another number ends the
	 * request as FAILED. */
	const int32_t *tokens;
	int32_t count;
	enum schedule_outcome outcome;
	/* The last row's hidden state has no NaN or infinity. That state depends on every earlier position of
	 * the sequence, so one row stands for all. Entries without logits need it too, because a page is
	 * shared only after a step that filled it with finite values. `false` ends the request as FAILED. */
	bool finite;
	/* Set by schedule_done: the first `taken` tokens count. Fewer than `count` if the request ended
	 * before. The caller sends only these to the client. */
	int32_t taken;
	/* Set by schedule_done: the request had not ended when this result came. Otherwise scores and tokens
	 * are dropped. */
	bool alive;
};

/* Takes the results [count] of the oldest plan in flight, in the order of its entries, and ends that plan.
 * BUG: no plan is in flight, or `count` differs from its entries. */
enum status schedule_done(struct schedule *s, struct schedule_result *results, int32_t count, uint64_t now,
			  struct error *err);

enum schedule_event_kind { SCHEDULE_EVENT_BEGUN, SCHEDULE_EVENT_ENDED };

struct schedule_event {
	enum schedule_event_kind kind;
	uint64_t id;
	uint32_t number; /* free for another request once ENDED was taken out and its last plan is done */
	/* Prompt tokens that came from the cache; at the first admission. */
	int32_t prompt_tokens, cached_tokens;
	/* ENDED */
	enum engine_end end; /* STOP, LENGTH, CANCELLED, DEADLINE or FAILED; never REFUSED */
	const char *text;    /* FAILED: a sentence for the client; else "". Static. */
	int32_t tokens;	     /* of the text */
	int32_t preemptions;
};

/* Takes one event out. A request's BEGUN comes before its ENDED. False: none is there. */
bool schedule_event(struct schedule *s, struct schedule_event *event);
/* The next time at which schedule_plan has something to do although no other function was called: a
 * deadline. UINT64_MAX: none. */
uint64_t schedule_wake(const struct schedule *s);

/* Gauges, and counters since the start. */
struct schedule_facts {
	int32_t running, waiting, in_flight; /* requests with a place, without; plans */
	struct pages_counts pages;
	uint64_t submitted, ended, steps;
	uint64_t tokens;	    /* of texts */
	uint64_t prompt_tokens;	    /* computed for the first time */
	uint64_t cached_tokens;	    /* prompt tokens that came from the cache */
	uint64_t recomputed_tokens; /* computed again after a preemption */
	uint64_t preemptions;
};
struct schedule_facts schedule_facts(const struct schedule *s);

/* For tests: compares all state of the scheduler and its pool with each other, in O(requests + pages).
 * MISMATCH with the first difference. */
enum status schedule_check(const struct schedule *s, struct error *err);
#endif
