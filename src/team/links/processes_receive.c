/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between workers: each is stored until a call takes it. */
#include <poll.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "team/links/processes_internal.h"

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

/* -- ranks that left -- */

static void tell_left(struct process_links *w, unsigned but)
{
	struct team_verdict v = {.status = w->left.status, .cause = w->left.cause};

	text_copy(v.text, sizeof(v.text), w->left.text);
	for (unsigned i = 0; i < w->peers; i++)
		if (w->peer[i].here && (w->rank || i != but))
			channel_send(&w->peer[i].ch, WIRE_LEFT, &v, sizeof(v), NULL);
}

void process_links_take_left(struct process_links *w, const struct error *why, unsigned from, bool told)
{
	if (w->left.status)
		return;
	w->left = *why;
	if (!told || !w->rank)
		tell_left(w, from);
}

void process_links_lose(struct process_links *w, unsigned i, const char *why)
{
	struct link_peer *m = &w->peer[i];
	struct error lost = {0};

	channel_close(&m->ch);
	m->here = false;
	error_set_cause(&lost, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, "rank %u: its worker is gone: %s",
			w->rank ? 0 : i, why);
	process_links_take_left(w, &lost, i, w->rank != 0);
}

/* -- received frames -- */

static bool on_meet(struct link_peer *m, const struct wire_frame *f)
{
	struct meet_head head;

	if (f->size < sizeof(head))
		return false;
	memcpy(&head, f->payload, sizeof(head));
	if (head.size != f->size - sizeof(head) || m->meets)
		return false;
	free(m->part);
	m->part = malloc(head.size ? head.size : 1);
	if (!m->part)
		return false;
	memcpy(m->part, f->payload + sizeof(head), head.size);
	m->kind = (enum team_meeting)head.kind;
	m->size = head.size;
	m->meets = true;
	return true;
}

static bool packet_add(struct link_peer *m, const void *bytes, size_t size, size_t at, size_t whole)
{
	struct packet *p = at ? m->last : NULL;

	if (!at) {
		p = whole < ((size_t)1 << 32) ? malloc(sizeof(*p) + whole) : NULL;
		if (!p)
			return false;
		*p = (struct packet){.whole = whole};
		if (m->last)
			m->last->next = p;
		else
			m->first = p;
		m->last = p;
	}
	if (!p || p->size != at || p->whole != whole || size > whole - at)
		return false;
	memcpy(p->bytes + at, bytes, size);
	p->size += size;
	return true;
}

static bool on_answer(struct link_peer *m, const struct wire_frame *f)
{
	struct answer_head head;

	if (f->size < sizeof(head))
		return false;
	memcpy(&head, f->payload, sizeof(head));
	return packet_add(m, f->payload + sizeof(head), f->size - sizeof(head), head.at, head.whole);
}

static bool on_left(struct process_links *w, unsigned i, const struct wire_frame *f)
{
	struct team_verdict v;
	struct error why = {0};

	if (f->size != sizeof(v))
		return false;
	memcpy(&v, f->payload, sizeof(v));
	v.text[sizeof(v.text) - 1] = '\0';
	if (!v.status || v.status >= STATUS_COUNT || v.cause >= CAUSE_COUNT)
		return false;
	error_set_cause(&why, (enum status)v.status, (enum cause)v.cause, "%s", v.text);
	process_links_take_left(w, &why, i, true);
	return true;
}

/* False: an unexpected frame. */
static bool on_frame(struct process_links *w, unsigned i, const struct wire_frame *f)
{
	struct link_peer *m = &w->peer[i];

	switch (f->kind) {
	case WIRE_LEFT:
		return on_left(w, i, f);
	case WIRE_MEET:
		return !w->rank && on_meet(m, f);
	case WIRE_MET:
		return w->rank && on_meet(m, f);
	case WIRE_ANSWER:
		return !w->rank && on_answer(m, f);
	case WIRE_COMMAND:
		return w->rank && f->size == sizeof(struct command_frame) &&
		       packet_add(m, f->payload, f->size, 0, f->size);
	default:
		return false;
	}
}

bool process_links_take(struct process_links *w, unsigned i)
{
	struct link_peer *m = &w->peer[i];
	struct error why = {0};
	enum wire_state state = WIRE_MORE;
	struct wire_frame f;

	while (m->here && (state = wire_take(&m->ch.in, &f, &why)) == WIRE_FRAME)
		if (!on_frame(w, i, &f)) {
			process_links_lose(w, i, "it sent an unexpected frame");
			return false;
		}
	if (state == WIRE_BROKEN)
		process_links_lose(w, i, why.text);
	return state != WIRE_BROKEN;
}

static void hear(struct process_links *w, unsigned i)
{
	struct link_peer *m = &w->peer[i];
	struct error why = {0};
	bool any = true;

	if (channel_flush(&m->ch, &why)) {
		process_links_lose(w, i, why.text);
		return;
	}
	while (any && m->here) {
		enum status st = channel_read(&m->ch, &any, &why);

		if (!process_links_take(w, i))
			return;
		if (st) {
			process_links_lose(w, i, why.text);
			return;
		}
	}
}

void process_links_look(struct process_links *w, unsigned wait_ms)
{
	struct pollfd few[32], *set = w->peers <= 32 ? few : calloc(w->peers, sizeof(*set));
	nfds_t count = 0;

	for (unsigned i = 0; set && i < w->peers; i++)
		if (w->peer[i].here)
			set[count++] = (struct pollfd){
				.fd = w->peer[i].ch.fd,
				.events = w->peer[i].ch.out_size ? POLLIN | POLLOUT : POLLIN,
			};
	if (set)
		poll(set, count, (int)wait_ms);
	for (unsigned i = 0, n = 0; set && i < w->peers; i++)
		if (w->peer[i].here && set[n++].revents)
			hear(w, i);
	if (set != few)
		free(set);
	w->looked_ns = now_ns();
}
