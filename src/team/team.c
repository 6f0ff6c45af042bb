/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that both kinds of links share: messages, and the team of one rank. */
#include "team/team.h"
#include <string.h>
#include "core/text/text.h"
#include "team/links/links.h"

enum status team_late(const struct team *t, const bool *here, const char *what, struct error *err)
{
	struct text names = {0};
	unsigned count = 0;

	for (unsigned r = 0; r < t->size; r++)
		if (!here[r] && count++ < 8)
			text_addf(&names, "%srank %u", count > 1 ? ", " : "", r);
	if (count > 8)
		text_addf(&names, " and %u others", count - 8);
	error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT, "%s did not reach %s within %.1f s",
			count ? text_str(&names) : "an unknown rank", what, t->limit_ms / 1e3);
	text_release(&names);
	return STATUS_NO_RESOURCE;
}

/* Records what the rank waits in from now on. Returns what was recorded before. */
static enum team_op record_op(const struct team *t, enum team_op op)
{
	enum team_op before = t->board ? (enum team_op)atomic_load(&t->board->op) : TEAM_OP_IDLE;

	team_at(t->board, op);
	return before;
}

void team_named(const struct team *t, struct error *err)
{
	struct error own = *err;

	if (!err->status || !strncmp(err->text, "rank ", 5))
		return;
	snprintf(err->text, sizeof(err->text), "%s: %.440s", t->name, own.text);
}

static enum status meet(struct team *t, enum team_meeting kind, const void *mine, size_t size, void *all,
			struct error *err)
{
	enum team_op before;
	enum status st;

	if (size > TEAM_BYTES_MAX)
		return error_set(err, STATUS_BUG, "cannot share %zu bytes among ranks: the limit is %d", size,
				 (int)TEAM_BYTES_MAX);
	before = record_op(t, TEAM_OP_AGREE);
	st = t->links->ops->meet(t, kind, mine, size, all, err);
	record_op(t, before);
	return st;
}

enum status team_agree(struct team *t, enum status mine, struct error *err)
{
	struct team_verdict own, worst = {0};
	struct error said = {0}, lost = {0};
	enum status st;

	if (!t || t->size < 2)
		return mine;
	if (mine && err)
		said = *err;
	if (mine)
		error_set(&said, mine, "%s", status_text(mine));
	team_named(t, &said);
	own = (struct team_verdict){.status = mine, .cause = said.cause, .rank = t->rank};
	text_copy(own.text, sizeof(own.text), said.text);
	st = meet(t, TEAM_MEET_AGREE, &own, sizeof(own), &worst, &lost);
	if (st && mine) /* its own message says more than "a rank was missing" */
		worst = own;
	else if (st)
		worst = (struct team_verdict){.status = st, .cause = lost.cause};
	if (!worst.status)
		return STATUS_OK;
	if (err)
		error_clear(err);
	return error_set_cause(err, (enum status)worst.status, (enum cause)worst.cause, "%.*s",
			       (int)sizeof(worst.text) - 1, st && !mine ? lost.text : worst.text);
}

enum status team_share(struct team *t, void *bytes, size_t size, struct error *err)
{
	return !t || t->size < 2 ? STATUS_OK : meet(t, TEAM_MEET_SHARE, bytes, size, bytes, err);
}

enum status team_gather(struct team *t, const void *mine, size_t size, void *all, struct error *err)
{
	if (t && t->size > 1)
		return meet(t, TEAM_MEET_GATHER, mine, size, all, err);
	memcpy(all, mine, size);
	return STATUS_OK;
}

enum status team_post(struct team *t, const struct team_command *c, struct error *err)
{
	return t->links->ops->post(t, c, err);
}

enum status team_wait_for_lead(struct team *t, struct team_command *c, struct error *err)
{
	enum status st;

	team_at(t->board, TEAM_OP_COMMAND);
	st = t->links->ops->follow(t, c, err);
	team_at(t->board, TEAM_OP_IDLE);
	return st;
}

enum status team_answer(struct team *t, const void *bytes, size_t size, struct error *err)
{
	return t->links->ops->answer(t, bytes, size, err);
}

enum status team_collect(struct team *t, unsigned rank, void *bytes, size_t room, size_t *size,
			 struct error *err)
{
	enum status st;

	team_at(t->board, TEAM_OP_ANSWER);
	st = t->links->ops->collect(t, rank, bytes, room, size, err);
	team_at(t->board, TEAM_OP_IDLE);
	return st;
}

void team_leave(struct team *t, const struct error *why)
{
	t->links->ops->leave(t, why);
}

bool team_left(struct team *t, struct error *why)
{
	return t->links->ops->left(t, why);
}

void team_begin(struct team *t)
{
	t->links->ops->begin(t);
}
