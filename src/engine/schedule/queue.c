/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait: a set of queues, one for each client and class. Within a class the client that has got
 * the fewest tokens comes first, then the earliest arrival. This is the virtual token counter of Sheng et
 * al., Fairness in Serving Large Language Models, OSDI 2024. A client that comes back starts at the count of
 * the client that was admitted last, so it cannot save up.
 */
#include "engine/schedule/state.h"

static uint32_t client_bucket(const struct schedule *s, uint64_t id)
{
	id = (id ^ s->options.pages.seed) * 0x9e3779b97f4a7c15;
	return id >> 32 & s->id_mask;
}

void client_enter(struct schedule *s, struct request *r, uint64_t id)
{
	uint32_t *bucket = s->client_ids + client_bucket(s, id), client = *bucket;

	while (client != NONE && s->clients[client].id != id)
		client = s->clients[client].next;
	if (client == NONE) {
		client = s->client_free;
		s->client_free = s->clients[client].next;
		s->clients[client] = (struct client){.id = id, .queues = NONE, .next = *bucket};
		*bucket = client;
	}
	if (!s->clients[client].waiting && s->clients[client].served < s->served)
		s->clients[client].served = s->served;
	s->clients[client].requests++;
	r->client = client;
}

void client_leave(struct schedule *s, struct request *r)
{
	struct client *c = s->clients + r->client;
	uint32_t *link = s->client_ids + client_bucket(s, c->id);

	if (--c->requests)
		return;
	while (*link != r->client)
		link = &s->clients[*link].next;
	*link = c->next;
	c->next = s->client_free;
	s->client_free = r->client;
}

/* The queue of a client in a class; made if it does not exist. */
static uint32_t queue_of(struct schedule *s, uint32_t client, int32_t class)
{
	struct client *c = s->clients + client;
	uint32_t queue = c->queues;

	while (queue != NONE && s->queues[queue].class != class)
		queue = s->queues[queue].next;
	if (queue != NONE)
		return queue;
	queue = s->queue_free;
	s->queue_free = s->queues[queue].next;
	s->queues[queue] = (struct queue){client, NONE, 0, class, NONE, c->queues};
	if (c->queues != NONE)
		s->queues[c->queues].before = queue;
	c->queues = queue;
	return queue;
}

static void queue_delete(struct schedule *s, uint32_t queue)
{
	struct queue *q = s->queues + queue;

	if (q->before == NONE)
		s->clients[q->client].queues = q->next;
	else
		s->queues[q->before].next = q->next;
	if (q->next != NONE)
		s->queues[q->next].before = q->before;
	q->next = s->queue_free;
	s->queue_free = queue;
}

/* Puts a queue that is in no set into the order of its class. */
static void queue_rank(struct schedule *s, uint32_t queue)
{
	struct queue *q = s->queues + queue;
	uint32_t first = treap_first(s->nodes, q->root);

	s->queue_nodes[queue].key[0] = s->clients[q->client].served;
	s->queue_nodes[queue].key[1] = s->requests[first].arrival;
	treap_insert(s->queue_nodes, &s->classes[q->class].queues, queue);
}

/* Preempted requests and those of class 0 do not take turns. */
static bool in_turn(const struct request *r)
{
	return r->class && !r->preemptions;
}

void queue_age_later(struct schedule *s, uint32_t number)
{
	const struct request *r = s->requests + number;

	if (r->class && s->options.age_ns)
		heap_insert(&s->ages, number, r->since + s->options.age_ns);
}

void queue_insert(struct schedule *s, uint32_t number)
{
	struct request *r = s->requests + number;
	struct class *class = s->classes + r->class;

	r->state = REQUEST_WAITING;
	s->nodes[number].key[0] = r->arrival;
	s->nodes[number].key[1] = 0;
	r->queue = NONE;
	s->clients[r->client].waiting++;
	queue_age_later(s, number);
	if (!in_turn(r)) {
		treap_insert(s->nodes, &class->first, number);
		return;
	}
	r->queue = queue_of(s, r->client, r->class);
	if (s->queues[r->queue].count++)
		treap_remove(s->queue_nodes, &class->queues, r->queue);
	treap_insert(s->nodes, &s->queues[r->queue].root, number);
	queue_rank(s, r->queue);
}

void queue_remove(struct schedule *s, uint32_t number)
{
	struct request *r = s->requests + number;
	struct class *class = s->classes + r->class;
	struct queue *q;

	heap_remove(&s->ages, number);
	s->clients[r->client].waiting--;
	if (r->queue == NONE) {
		treap_remove(s->nodes, &class->first, number);
		return;
	}
	q = s->queues + r->queue;
	treap_remove(s->queue_nodes, &class->queues, r->queue);
	treap_remove(s->nodes, &q->root, number);
	if (--q->count)
		queue_rank(s, r->queue);
	else
		queue_delete(s, r->queue);
	r->queue = NONE;
}

uint32_t queue_first(struct schedule *s, int32_t class)
{
	struct class *c = s->classes + class;
	uint32_t queue;

	if (c->first != NONE)
		return treap_first(s->nodes, c->first);
	/* Clients may have got tokens since their queues were ranked: the key is then too low. */
	while ((queue = treap_first(s->queue_nodes, c->queues)) != NONE &&
	       s->queue_nodes[queue].key[0] != s->clients[s->queues[queue].client].served) {
		treap_remove(s->queue_nodes, &c->queues, queue);
		queue_rank(s, queue);
	}
	return queue == NONE ? NONE : treap_first(s->nodes, s->queues[queue].root);
}

/* A running request rises while its prompt is not planned to the end, because requests of higher classes may
 * take all the time of a step. */
static void age_running(struct schedule *s, uint32_t number)
{
	struct request *r = s->requests + number;

	heap_remove(&s->ages, number);
	if (r->planned >= r->prompt)
		return;
	order_leave(s, number);
	r->class --;
	r->since += s->options.age_ns;
	order_enter(s, number);
	queue_age_later(s, number);
}

void queue_age(struct schedule *s, uint64_t now)
{
	for (int32_t i = 0; i < PROMOTED_MOST && heap_first_key(&s->ages) <= now; i++) {
		uint32_t number = heap_first(&s->ages);
		struct request *r = s->requests + number;

		if (r->state == REQUEST_RUNNING) {
			age_running(s, number);
			continue;
		}
		queue_remove(s, number);
		r->class --;
		r->since += s->options.age_ns;
		queue_insert(s, number);
	}
}

void queue_park(struct schedule *s, uint32_t number, uint32_t page)
{
	struct request *r = s->requests + number;

	queue_remove(s, number);
	r->state = REQUEST_PARKED;
	r->parks++;
	r->waits_page = page;
	r->parked_before = NONE;
	r->parked_next = s->waiters[page];
	if (r->parked_next != NONE)
		s->requests[r->parked_next].parked_before = number;
	s->waiters[page] = number;
	s->parked++;
}

void queue_unpark(struct schedule *s, uint32_t number)
{
	struct request *r = s->requests + number;

	if (r->parked_before == NONE)
		s->waiters[r->waits_page] = r->parked_next;
	else
		s->requests[r->parked_before].parked_next = r->parked_next;
	if (r->parked_next != NONE)
		s->requests[r->parked_next].parked_before = r->parked_before;
	s->parked--;
}

void queue_wake(struct schedule *s, uint32_t page)
{
	uint32_t number;

	while ((number = s->waiters[page]) != NONE) {
		queue_unpark(s, number);
		queue_insert(s, number);
	}
}
