/* SPDX-License-Identifier: Apache-2.0 */
/* Handles frames from the peers of a team, and finds peers that are silent. */
#include "team/control/internal.h"

enum {
	PING_MS = 2000,	 /* or a fifth of the quiet limit */
	CLOCK_MS = 1000, /* for the readings of one clock */
	CLOCK_LEAST = 4, /* readings of a clock, also if they take longer */
	AWAY_MS = 1000,	 /* if this process did not poll for so long, no peer counts as silent */
	HELD_MAX = 64,	 /* frames of a peer that no call has taken yet */
	CHUNKS_MAX = 64, /* read from one peer in one pass */
};
static const uint64_t ms = 1000000;

static void lose(struct control *c, struct peer *p, const char *why)
{
	struct error lost = {0};
	char who[96];

	if (c->collect) {
		collect_lost(c, p, why);
		channel_close(&p->ch);
		p->here = false;
		return;
	}
	control_rank_text(c, p->rank, who, sizeof(who));
	error_set_cause(&lost, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, "lost %s: %s%s%s", who, why,
			*p->last ? "; last: " : "", p->last);
	channel_close(&p->ch);
	p->here = false;
	control_over(c, &lost, NULL);
}

static void hold(struct control *c, struct peer *p, const struct wire_frame *f)
{
	struct held **end = &p->first, *h;
	unsigned count = 0;

	for (; *end; end = &(*end)->next)
		count++;
	h = count < HELD_MAX ? malloc(sizeof(*h) + f->size + 1) : NULL;
	if (!h) {
		lose(c, p, "it sent more frames than expected");
		return;
	}
	*h = (struct held){.kind = f->kind, .size = f->size};
	if (f->size)
		memcpy(h->payload, f->payload, f->size);
	h->payload[f->size] = '\0';
	*end = h;
}

void control_ping(struct control *c, struct peer *p)
{
	p->pinged_ns = clock_now_ns(c->clock);
	control_send_json(c, p, WIRE_PING, json_pack("{s:I}", "sent", (json_int_t)p->pinged_ns));
}

/* The reading with the shortest round trip counts; its error is half of that round trip. */
static void on_pong(struct control *c, struct peer *p, const json_t *j)
{
	uint64_t now = clock_now_ns(c->clock),
		 sent = (uint64_t)json_integer_value(json_object_get(j, "sent"));
	uint64_t there = (uint64_t)json_integer_value(json_object_get(j, "there"));
	struct measured *m = &p->clock;

	if (!m->left || sent != p->pinged_ns || sent > now)
		return;
	if (!m->any || (now - sent) / 2 < m->best.error_ns)
		m->best = (struct team_clock){.offset_ns = (int64_t)(there - (sent + (now - sent) / 2)),
					      .error_ns = (now - sent) / 2,
					      .at_ns = now};
	m->any = true;
	m->left--;
	if (m->left <= CONTROL_PINGS - CLOCK_LEAST && now - m->begun_ns > CLOCK_MS * ms)
		m->left = 0; /* with a long round trip a few readings must suffice */
	if (m->left)
		control_ping(c, p);
}

static void on_stop(struct control *c, struct peer *p, const json_t *j)
{
	struct error why = {0}, told = {0};
	char who[96];

	control_error_from(&told, j);
	if (!told.status)
		return;
	c->over_told = c->rank != 0; /* rank 0 has sent it to all */
	if (c->rank)
		why = told;
	else {
		control_rank_text(c, p->rank, who, sizeof(who));
		error_set_cause(&why, told.status, told.cause, "%s ended the team: %.380s", who, told.text);
	}
	control_over(c, &why, NULL);
}

static void on_end(struct control *c, struct peer *p, const struct wire_frame *f)
{
	json_t *j = json_loadb((const char *)f->payload, f->size, JSON_REJECT_DUPLICATES, NULL);
	enum ending ending = ENDING_DONE;

	ending_from_name(json_string_value(json_object_get(j, "ending")), &ending);
	json_decref(j);
	if (ending != ENDING_DONE && !c->fell) {
		c->fell = true;
		c->fell_rank = p->rank;
		c->fell_ending = ending;
		control_send_json(c, NULL, WIRE_FELL, json_pack("{s:i}", "case", (int)c->case_ordinal));
	}
	hold(c, p, f);
}

/* Frames that every rank answers at once, in any state. */
static void on_json(struct control *c, struct peer *p, const struct wire_frame *f)
{
	json_t *j = json_loadb((const char *)f->payload, f->size, JSON_REJECT_DUPLICATES, NULL);
	struct error why = {0};
	json_int_t number;

	if (!json_is_object(j)) {
		json_decref(j);
		lose(c, p, "it sent a frame that is not a JSON object");
		return;
	}
	switch (f->kind) {
	case WIRE_PING:
		control_send_json(c, p, WIRE_PONG,
				  json_pack("{s:I,s:I}", "sent",
					    json_integer_value(json_object_get(j, "sent")), "there",
					    (json_int_t)clock_now_ns(c->clock)));
		break;
	case WIRE_PONG:
		on_pong(c, p, j);
		break;
	case WIRE_STOP:
		on_stop(c, p, j);
		break;
	case WIRE_FELL:
		if (json_integer_value(json_object_get(j, "case")) == (json_int_t)c->case_ordinal)
			c->fell = true;
		break;
	default: /* LATE: sent to rank 0, because only it knows which ranks are late */
		number = json_integer_value(json_object_get(j, "limit_ms"));
		control_name_late(c, json_string_value(json_object_get(j, "what")),
				  number > 0 && number < UINT32_MAX ? (unsigned)number : 0, &why);
		control_over(c, &why, NULL);
	}
	json_decref(j);
}

static void on_file(struct control *c, struct peer *p, const struct wire_frame *f)
{
	collect_frame(c, p, f);
}

static void on_bye(struct control *c, struct peer *p, const struct wire_frame *f)
{
	(void)f;
	if (!c->parting || c->collect)
		lose(c, p, "it left the team");
	p->left = true;
	p->here = false;
}

/* Which ranks may send a kind of frame, once the team has formed. */
enum way {
	NEVER, /* only while the team forms, or between workers */
	ANY,
	FROM_ZERO,
	TO_ZERO,
	COLLECTING, /* to rank 0, after it asked for files */
};
static const struct {
	enum way way;
	void (*take)(struct control *c, struct peer *p, const struct wire_frame *f);
} heard[WIRE_KIND_COUNT] = {
	[WIRE_PING] = {ANY, on_json},	     [WIRE_PONG] = {ANY, on_json},
	[WIRE_STOP] = {ANY, on_json},	     [WIRE_FELL] = {FROM_ZERO, on_json},
	[WIRE_LATE] = {TO_ZERO, on_json},    [WIRE_SHAPE] = {ANY, hold},
	[WIRE_LINE] = {TO_ZERO, hold},	     [WIRE_BEGIN] = {TO_ZERO, hold},
	[WIRE_GATHER] = {TO_ZERO, hold},     [WIRE_PART] = {TO_ZERO, hold},
	[WIRE_END] = {TO_ZERO, on_end},	     [WIRE_GO] = {FROM_ZERO, hold},
	[WIRE_SHARE] = {FROM_ZERO, hold},    [WIRE_COLLECT] = {FROM_ZERO, hold},
	[WIRE_TAKEN] = {FROM_ZERO, hold},    [WIRE_FILE] = {COLLECTING, on_file},
	[WIRE_DATA] = {COLLECTING, on_file}, [WIRE_SENT] = {COLLECTING, on_file},
	[WIRE_BYE] = {ANY, on_bye},
};

static void on_frame(struct control *c, struct peer *p, const struct wire_frame *f)
{
	const bool in_turn[] = {
		[NEVER] = false,
		[ANY] = true,
		[FROM_ZERO] = c->rank != 0,
		[TO_ZERO] = c->rank == 0,
		[COLLECTING] = c->collect != NULL,
	};

	if (f->kind < WIRE_KIND_COUNT && in_turn[heard[f->kind].way])
		heard[f->kind].take(c, p, f);
	else
		lose(c, p, "it sent an unexpected frame");
}

static void take_frames(struct control *c, struct peer *p)
{
	struct error err = {0};
	struct wire_frame f;
	enum wire_state state = WIRE_MORE;

	while (p->here && (state = wire_take(&p->ch.in, &f, &err)) == WIRE_FRAME) {
		p->heard_ns = clock_now_ns(c->clock);
		on_frame(c, p, &f);
	}
	if (p->here && state == WIRE_BROKEN)
		lose(c, p, err.text);
}

static void take_in(struct control *c, struct peer *p)
{
	struct error err = {0};
	bool any = true;

	take_frames(c, p); /* frames that came with the handshake: they may explain why the peer closed */
	for (int i = 0; i < CHUNKS_MAX && p->here && any; i++) {
		if (channel_read(&p->ch, &any, &err))
			lose(c, p, err.text);
		else
			take_frames(c, p);
	}
	if (p->here && channel_flush(&p->ch, &err)) /* after its last frames, which may explain the failure */
		lose(c, p, err.text);
	if (p->left)
		channel_close(&p->ch);
}

/* A peer that was pinged and sent nothing for quiet_ms is lost: a cut cable closes no connection. */
static void judge_silence(struct control *c, struct peer *p, uint64_t now)
{
	unsigned ping_ms = c->o.quiet_ms / 5 < PING_MS ? c->o.quiet_ms / 5 : PING_MS;
	uint64_t asked = p->pinged_ns > p->heard_ns ? p->pinged_ns : p->heard_ns;
	char why[64];

	if (!p->here)
		return;
	if (now > p->heard_ns && now - p->heard_ns > c->o.quiet_ms * ms) {
		snprintf(why, sizeof(why), "it has been silent for %.1f s",
			 (double)(now - p->heard_ns) / 1e9);
		lose(c, p, why);
	} else if (now > asked && now - asked > ping_ms * ms && !p->clock.left) {
		control_ping(c, p);
	}
}

void control_take_in(struct control *c)
{
	uint64_t now = clock_now_ns(c->clock), away = c->looked_ns ? now - c->looked_ns : 0;

	for (unsigned i = 0; i < c->peers; i++) {
		if (away > AWAY_MS * ms)
			c->peer[i].heard_ns += away;
		take_in(c, &c->peer[i]);
	}
	now = clock_now_ns(c->clock);
	for (unsigned i = 0; i < c->peers && !c->over.status; i++)
		judge_silence(c, &c->peer[i], now);
	c->looked_ns = now;
}
