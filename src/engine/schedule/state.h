/* SPDX-License-Identifier: Apache-2.0 */
/* The private state of the scheduler, shared by its files. */
#ifndef ENGINE_SCHEDULE_STATE_H
#define ENGINE_SCHEDULE_STATE_H
#include "core/math/heap.h"
#include "engine/schedule/schedule.h"
#include "engine/schedule/treap.h"

#define NONE ((uint32_t)TREAP_NONE)

/* Classes of waiting requests. Class 0 is for requests that have aged past every priority: in it only arrival
 * counts. Class c is priority ENGINE_PRIORITY_FIRST + c - 1. */
enum { BACKLOGS_SAVED = 8 }; /* steps with a backlog that may follow each other beside decoding requests */
enum { CLASSES = ENGINE_PRIORITY_LAST - ENGINE_PRIORITY_FIRST + 2 };

enum {
	HELD_MOST = 4,	/* requests without enough pages that later ones may pass, looked at in one plan */
	PARKS_MOST = 4, /* times that a request waits for the pages of another one */
	LOOKED_MOST = 4096,  /* pages compared for admission in one plan, after the first request */
	RETRY_STEPS = 16,    /* a request without enough pages is looked at again after so many plans */
	PROMOTED_MOST = 256, /* requests that age in one plan */
};

enum request_state {
	REQUEST_FREE,
	REQUEST_WAITING,   /* in a queue */
	REQUEST_PARKED,	   /* waits for a page that another request computes */
	REQUEST_RUNNING,   /* has a place and pages */
	REQUEST_PREEMPTED, /* lost its pages; waits for the plans in flight that contain it */
	REQUEST_ENDED,	   /* waits for such plans, or for its event to be taken out */
};

struct request {
	uint64_t id, deadline, arrival;
	struct pages_key key;
	enum request_state state;
	int32_t priority;
	bool scores, score_only; /* prompt log probabilities; no text */

	/* Lengths in tokens. */
	int32_t prompt, limit;		/* limit: prompt and text */
	int32_t known, planned_known;	/* ids on the host; and those that plans in flight choose */
	int32_t computed, planned;	/* positions whose keys and values are, or will be, in the pages */
	int32_t scored, planned_scored; /* positions of the prompt whose logits are done */
	int32_t reached;		/* positions ever computed or found in the cache */
	int32_t charged;		/* positions charged to the client */
	int32_t cached;			/* found in the cache at the first admission */
	int32_t announced;		/* positions whose pages were announced */
	int32_t *tokens, capacity;	/* [known] */

	/* While it has a place. */
	uint32_t place;			      /* NONE: none */
	int32_t page_count, hits, registered; /* pages; those from the cache; those in the pool's index */
	int32_t sent;			      /* pages that the device knows */
	int32_t in_flight;		      /* plans that contain it */
	uint64_t step;			      /* the last of these */
	bool begins, variable, starved; /* no entry yet; an entry with most > 1 in flight; lacks a page now */

	/* While it waits. */
	int32_t class, bypassed, parks;
	uint64_t since;	     /* when it entered its class */
	int64_t short_pages; /* pages that were available when they were too few; -1: not tried */
	uint64_t short_step;
	uint32_t queue, client;		     /* queue: NONE in the set `first` of its class */
	uint32_t waits_page;		     /* PARKED */
	uint32_t parked_before, parked_next; /* requests that wait for the same page */

	/* Its end. */
	enum engine_end end;
	const char *text;
	int32_t preemptions, text_tokens;
	bool begun, begun_event, ended_event,
		listed; /* begun: once admitted; listed: in the list of events */
	uint32_t event_next, id_next, free_next;
};

/* All requests of one client. */
struct client {
	uint64_t id, served; /* tokens that it has got */
	uint32_t requests, waiting;
	uint32_t queues, next; /* first queue; next of the bucket, or of the free list */
};

/* Waiting requests of one client in one class. */
struct queue {
	uint32_t client, root, count;
	int32_t class;
	uint32_t before, next; /* queues of the client; next also of the free list */
};

struct class
{
	uint32_t first;	 /* treap of requests by arrival: preempted ones, and all of class 0 */
	uint32_t queues; /* treap of queues by tokens of the client, then arrival of the first request */
};

struct schedule {
	struct schedule_options options;
	struct pages *pool;
	int32_t page_tokens, longest, table_pages; /* longest: positions of any request */

	struct request *requests; /* [requests_most] */
	struct treap_node *nodes; /* [requests_most] */
	uint32_t *ids, id_mask;	  /* hash table of requests by id */
	uint32_t request_free;
	struct client *clients;		/* [requests_most] */
	uint32_t *client_ids;		/* hash table, id_mask */
	struct queue *queues;		/* [requests_most] */
	struct treap_node *queue_nodes; /* [requests_most] */
	uint32_t client_free, queue_free;
	struct class classes[CLASSES];
	struct heap deadlines, ages; /* requests with a deadline; requests that age */
	uint32_t *waiters;	     /* [pages] first request that waits for the page; NONE: none */
	uint64_t served;	     /* of the client that was admitted last: where new clients begin */
	uint64_t arrivals;

	uint32_t *order; /* [places] running requests by class, then arrival */
	int32_t running, waiting, parked;
	uint32_t *place_free; /* [places] stack */
	int32_t places_free;
	uint32_t *tables; /* [places, table_pages] */

	struct schedule_plan *plans;	/* [plans_most] ring */
	struct schedule_entry *entries; /* [plans_most, places] */
	int32_t in_flight;
	uint64_t step, done;   /* the last planned; the last done */
	int64_t backlog_saved; /* steps that count for steps with a backlog: backlog_every for one */

	uint32_t event_first, event_last;
	struct schedule_facts facts;
};

static inline uint32_t *table_of(const struct schedule *s, const struct request *r)
{
	return s->tables + (size_t)r->place * s->table_pages;
}

static inline int32_t pages_for(const struct schedule *s, int64_t positions)
{
	return (positions + s->page_tokens - 1) / s->page_tokens;
}

static inline bool is_live(const struct request *r)
{
	return r->state != REQUEST_FREE && r->state != REQUEST_ENDED;
}

/* Running requests and victims: class, then arrival. */
static inline bool ranks_before(const struct request *a, const struct request *b)
{
	return a->class != b->class ? a->class < b->class : a->arrival < b->arrival;
}

/* The first request of the hash table's bucket for an id. */
uint32_t *schedule_id_bucket(const struct schedule *s, uint64_t id);

/* queue.c: requests that wait. */
void client_enter(struct schedule *s, struct request *r, uint64_t client);
void client_leave(struct schedule *s, struct request *r);
/* The request's place among those that wait in its class; it must be in none. */
void queue_insert(struct schedule *s, uint32_t number);
void queue_remove(struct schedule *s, uint32_t number);
/* The request of the class that comes first; NONE: none. */
uint32_t queue_first(struct schedule *s, int32_t class);
/* The request rises by one class after age_ns from `since` on, if it waits or its prompt is not planned. */
void queue_age_later(struct schedule *s, uint32_t number);
/* Raises the requests whose time has come. */
void queue_age(struct schedule *s, uint64_t now);
/* Waits until `page` is computed or released. */
void queue_park(struct schedule *s, uint32_t number, uint32_t page);
void queue_unpark(struct schedule *s, uint32_t number);
/* Requests that wait for the page return to their queues. */
void queue_wake(struct schedule *s, uint32_t page);

/* life.c: places, pages and ends of requests. */
/* Puts a request into the order of running ones, and takes it out. */
void order_enter(struct schedule *s, uint32_t number);
void order_leave(struct schedule *s, uint32_t number);
void request_preempt(struct schedule *s, uint32_t number, uint64_t now);
/* The first end wins; the request must be live. `text`: static. */
void request_end(struct schedule *s, uint32_t number, enum engine_end end, const char *text);
/* A plan with the request is done: it may return to its queue, or leave its place and its number. */
void request_settle(struct schedule *s, uint32_t number);
void request_expire(struct schedule *s, uint64_t now);
void event_add(struct schedule *s, uint32_t number);

/* admit.c: waiting requests become running ones. */
void schedule_admit(struct schedule *s, uint64_t now);
#endif
