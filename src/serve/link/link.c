/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/link/link.h"

#include "engine/frame/frame.h"

/* The ids of requests hold the slot in their lower bits. */
enum { SLOT_BITS = 20, MESSAGES_AT_ONCE = 64 };

struct slot {
	uint64_t id;	  /* 0: free */
	struct choice *c; /* NULL: forgotten; its last event is awaited */
	bool cancelled;
	bool sent; /* the cancel is in the queue of frames */
};

struct link {
	struct link_limits limits;
	struct link_hooks hooks;
	struct frame_link *frames; /* NULL: no engine */
	enum link_state state;
	uint32_t epoch;
	char cause[320];
	struct engine_ready ready;
	struct slot *slots;
	uint32_t *free_slots;
	size_t free_count;
	bool unsent; /* a cancelled slot may wait for room in the queue of frames */
	uint64_t serial;
	uint64_t heard_ns, expected_ns; /* the last message; what its heartbeat predicted */
	uint64_t ticked_ns;		/* the last tick */
};

enum status link_create(struct link **out, const struct link_limits *limits, const struct link_hooks *hooks,
			struct error *err)
{
	struct link *l = calloc(1, sizeof(*l));
	size_t most = limits->choices;

	*out = NULL;
	if (most > 1u << SLOT_BITS)
		most = 1u << SLOT_BITS;
	if (l) {
		l->slots = calloc(most, sizeof(*l->slots));
		l->free_slots = calloc(most, sizeof(*l->free_slots));
	}
	if (!l || !l->slots || !l->free_slots) {
		link_destroy(&l);
		return error_set(err, STATUS_NO_RESOURCE, "a list of %zu requests", most);
	}
	l->limits = *limits;
	l->limits.choices = most;
	l->hooks = *hooks;
	for (size_t i = 0; i < most; i++)
		l->free_slots[l->free_count++] = (uint32_t)(most - 1 - i);
	text_copy(l->cause, sizeof(l->cause), "the engine has not started yet");
	*out = l;
	return STATUS_OK;
}

void link_destroy(struct link **l)
{
	if (*l) {
		frame_link_destroy(&(*l)->frames);
		free((*l)->slots);
		free((*l)->free_slots);
		free(*l);
	}
	*l = NULL;
}

static void free_slot(struct link *l, struct slot *s)
{
	*s = (struct slot){0};
	l->free_slots[l->free_count++] = (uint32_t)(s - l->slots);
}

static void free_slots(struct link *l)
{
	for (size_t i = 0; i < l->limits.choices; i++) {
		if (!l->slots[i].id)
			continue;
		if (l->slots[i].c)
			l->slots[i].c->id = 0;
		free_slot(l, &l->slots[i]);
	}
}

static void detach(struct link *l, const char *cause)
{
	if (!l->frames)
		return;
	frame_link_destroy(&l->frames);
	l->state = LINK_ABSENT;
	l->ready = (struct engine_ready){0};
	text_copy(l->cause, sizeof(l->cause), cause);
	free_slots(l);
	l->hooks.lost(l->hooks.arg);
}

void link_attach(struct link *l, int fd, uint32_t epoch, uint64_t now_ns)
{
	struct error err = {0};

	detach(l, "the engine was replaced");
	l->epoch = epoch;
	if (frame_link_create(&l->frames, fd, epoch, 0, &err)) {
		text_copy(l->cause, sizeof(l->cause), err.text);
		return;
	}
	l->state = LINK_LOADING;
	text_copy(l->cause, sizeof(l->cause), "the engine loads the model");
	l->heard_ns = now_ns;
	l->expected_ns = 0;
}

void link_lose(struct link *l, uint32_t epoch, const char *cause)
{
	if (epoch != l->epoch)
		return;
	detach(l, cause);
	/* the end of the stream may have come first: the supervisor knows the better cause */
	text_copy(l->cause, sizeof(l->cause), cause);
}

enum link_state link_state(const struct link *l)
{
	return l->state;
}

uint32_t link_epoch(const struct link *l)
{
	return l->epoch;
}

const char *link_cause(const struct link *l)
{
	return l->state == LINK_READY ? "" : l->cause;
}

const struct engine_ready *link_ready(const struct link *l)
{
	return &l->ready;
}

size_t link_running(const struct link *l)
{
	return l->limits.choices - l->free_count;
}

int link_fd(const struct link *l)
{
	return l->frames ? frame_link_fd(l->frames) : -1;
}

bool link_wants_write(const struct link *l)
{
	return l->frames && frame_link_waits(l->frames);
}

/* Puts the cancel of a slot into the queue of frames. If it has no room, send_cancels tries again. */
static void send_cancel(struct link *l, struct slot *s)
{
	struct error err = {0};

	if (s->sent || !l->frames)
		return;
	s->cancelled = true;
	s->sent = frame_send_cancel(l->frames, s->id, &err) != STATUS_NO_RESOURCE;
	l->unsent |= !s->sent;
}

/* Sends the cancels that had no room, until there is none again. */
static void send_cancels(struct link *l)
{
	if (!l->unsent)
		return;
	l->unsent = false;
	for (size_t i = 0; i < l->limits.choices && !l->unsent; i++)
		if (l->slots[i].cancelled)
			send_cancel(l, &l->slots[i]);
}

void link_flush(struct link *l)
{
	struct error err = {0};

	if (l->frames && frame_flush(l->frames, &err))
		detach(l, "the engine process ended");
	send_cancels(l);
}

static struct slot *slot_of(struct link *l, uint64_t id)
{
	size_t i = id & ((1u << SLOT_BITS) - 1);

	return i < l->limits.choices && l->slots[i].id == id && id ? &l->slots[i] : NULL;
}

static void take_event(struct link *l, const struct engine_event *e)
{
	struct slot *s = slot_of(l, e->id);
	struct choice *c;

	if (!s)
		return;
	c = s->c;
	if (e->kind == ENGINE_EVENT_END) {
		if (c)
			c->id = 0;
		free_slot(l, s);
	}
	if (c)
		l->hooks.event(l->hooks.arg, c, e);
}

static void take(struct link *l, const struct frame_message *m, uint64_t now_ns)
{
	l->heard_ns = now_ns;
	switch (m->kind) {
	case FRAME_READY:
		l->ready = m->ready;
		l->state = LINK_READY;
		l->cause[0] = '\0';
		l->hooks.ready(l->hooks.arg, &m->ready);
		break;
	case FRAME_STEP:
		l->expected_ns = 0;
		for (size_t i = 0; i < m->step.count && l->frames; i++)
			take_event(l, &m->step.events[i]);
		l->hooks.step(l->hooks.arg, &m->step.facts);
		break;
	case FRAME_HEARTBEAT:
		l->expected_ns = m->heartbeat.expected_ns;
		break;
	default: /* requests do not come from the engine */
		detach(l, "the engine sent a message of a wrong kind");
	}
}

void link_receive(struct link *l, uint64_t now_ns)
{
	struct frame_message m;
	struct error err = {0};
	bool got = true;

	for (int i = 0; l->frames && got && i < MESSAGES_AT_ONCE; i++) {
		enum status st = frame_receive(l->frames, &m, &got, &err);

		if (st == STATUS_UNAVAILABLE)
			detach(l, "the engine process ended");
		else if (st)
			detach(l, err.text);
		else if (got)
			take(l, &m, now_ns);
	}
}

/* If this process did not run for a while, the engine probably did not either, as when a virtual machine is
 * paused. Then its silence begins anew. */
static void forgive_pause(struct link *l, uint64_t now_ns)
{
	if (l->ticked_ns && now_ns - l->ticked_ns > l->limits.hang_ns / 2)
		l->heard_ns = now_ns;
	l->ticked_ns = now_ns;
}

bool link_tick(struct link *l, uint64_t now_ns)
{
	char cause[128];

	send_cancels(l);
	forgive_pause(l, now_ns);
	if (l->state != LINK_READY || now_ns <= l->heard_ns ||
	    now_ns - l->heard_ns < l->limits.hang_ns + l->expected_ns)
		return false;
	snprintf(cause, sizeof(cause), "the engine has not answered for %.1f s",
		 (double)(now_ns - l->heard_ns) * 1e-9);
	detach(l, cause);
	return true;
}

bool link_submit(struct link *l, struct choice *c, uint64_t client, struct api_error *err)
{
	struct engine_request r;
	struct error why = {0};
	struct slot *s;
	enum status st;

	if (l->state != LINK_READY) {
		err->retry_s = 5;
		return api_fail(err, 503, "engine_unavailable", "%s", l->cause);
	}
	if (!l->free_count) {
		err->retry_s = 1;
		return api_fail(err, 429, "queue_full",
				"%zu requests are running or waiting; try again later", l->limits.choices);
	}
	s = &l->slots[l->free_slots[--l->free_count]];
	s->id = ++l->serial << SLOT_BITS | (uint64_t)(s - l->slots);
	s->c = c;
	c->id = s->id;
	answer_engine_request(c, l->ready.context, &r);
	r.id = s->id;
	r.client = client;
	if (l->limits.answer_ns)
		r.deadline_ns = c->answer->began_ns + l->limits.answer_ns;
	st = frame_send_request(l->frames, &r, &why);
	if (!st)
		return true;
	c->id = 0;
	free_slot(l, s);
	if (st == STATUS_BAD_INPUT)
		return api_wrong(err,
				 r.prompt_count > FRAME_PROMPT_MOST
					 ? request_prompt_field(c->answer->request->protocol)
					 : request_refused_field(c->answer->request, why.text),
				 "%s", why.text);
	if (st == STATUS_UNAVAILABLE) {
		detach(l, "the engine process ended");
		err->retry_s = 5;
		return api_fail(err, 503, "engine_unavailable", "%s", l->cause);
	}
	err->retry_s = 1;
	return api_fail(err, 429, "queue_full",
			"the engine does not take requests fast enough; try again later");
}

void link_cancel(struct link *l, struct choice *c)
{
	struct slot *s = slot_of(l, c->id);

	if (s)
		send_cancel(l, s);
}

void link_forget(struct link *l, struct choice *c)
{
	struct slot *s = slot_of(l, c->id);

	if (!s)
		return;
	send_cancel(l, s);
	s->c = NULL;
	c->id = 0;
}

bool link_drain(struct link *l)
{
	struct error err = {0};
	enum status st = l->frames ? frame_send_drain(l->frames, &err) : STATUS_OK;

	if (st == STATUS_UNAVAILABLE)
		detach(l, "the engine process ended");
	return st != STATUS_NO_RESOURCE;
}
