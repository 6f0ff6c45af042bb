/* SPDX-License-Identifier: Apache-2.0 */
/* Agreements: every rank sends its part to rank 0, and rank 0 answers all at once. */
#include <errno.h>
#include "core/file/file.h"
#include "core/json/member.h"
#include "core/text/text.h"
#include "team/control/internal.h"

enum {
	ANSWER_GRACE_MS = 5000, /* within it rank 0 names the late ranks, or is gone itself */
	SAY_MS = 10000		/* a longer wait for rank 0 is logged, so that it does not look like a hang */
};

/* Makes rank 0's answer from the objects of all ranks (by rank); takes no ownership. NULL: no memory. */
typedef json_t *(*answer_fn)(struct control *c, json_t *const *all, struct error *err);

struct step {
	enum wire_kind kind;
	char what[64]; /* "line 3 of round 1"; if it differs between ranks, their suites differ */
	unsigned limit_ms;
	answer_fn answer;
	bool told; /* log a long wait for rank 0 */
};

static bool all_spoke(const struct control *c, const void *arg)
{
	(void)arg;
	for (unsigned i = 1; i < c->peers; i++)
		if (!c->peer[i].first)
			return false;
	return true;
}

static bool zero_spoke(const struct control *c, const void *arg)
{
	(void)arg;
	return c->peer[0].first;
}

/* Checks that rank `rank` is at the same step as rank 0. */
static enum status same_step(struct control *c, unsigned rank, const struct step *s, enum wire_kind kind,
			     const json_t *j, struct error *err)
{
	const char *what = json_string_value(json_object_get(j, "what"));
	struct error why = {0};
	char who[96];

	if (kind == s->kind && what && !strcmp(what, s->what)) {
		text_copy(c->peer[rank].last, sizeof(c->peer[rank].last), what);
		return STATUS_OK;
	}
	control_rank_text(c, rank, who, sizeof(who));
	error_set_cause(&why, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
			"%s is at %.64s and rank 0 is at %s: their suites differ", who,
			what ? what : "another step", s->what);
	return control_over(c, &why, err);
}

static enum status answer_all(struct control *c, const struct step *s, json_t **all, json_t **answer,
			      struct error *err)
{
	enum status st = STATUS_OK;
	enum wire_kind kind = WIRE_KIND_COUNT;

	for (unsigned r = 1; r < c->size && !st; r++) {
		all[r] = control_held_json(&c->peer[r], &kind);
		st = same_step(c, r, s, kind, all[r], err);
	}
	if (st)
		return st;
	*answer = s->answer ? s->answer(c, all, err) : json_object();
	if (c->over.status)
		return control_over(c, &c->over, err);
	control_send_json(c, NULL, WIRE_GO, json_incref(*answer));
	return c->over.status ? control_over(c, &c->over, err) : STATUS_OK;
}

/* Rank 0: receives the objects of all ranks, then answers. */
static enum status lead(struct control *c, const struct step *s, json_t *mine, json_t **answer,
			struct error *err)
{
	enum status st = control_wait(c, all_spoke, NULL, control_deadline(c, s->limit_ms), err);
	json_t **all = calloc(c->size, sizeof(*all));
	struct error why = {0};

	if (!all)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for an agreement of %u ranks", c->size);
	if (st && !c->over.status && all) {
		control_name_late(c, s->what, s->limit_ms, &why);
		st = control_over(c, &why, err);
	}
	if (!st) {
		all[0] = mine;
		st = answer_all(c, s, all, answer, err);
		for (unsigned r = 1; r < c->size; r++)
			json_decref(all[r]);
	}
	free(all);
	return st;
}

/* After the limit: asks rank 0, which knows the missing ranks and names them to all. */
static enum status ask_who_is_late(struct control *c, const struct step *s, struct error *err)
{
	struct error why = {0};
	enum status st;
	char who[96];

	control_send_json(c, &c->peer[0], WIRE_LATE,
			  json_pack("{s:s,s:I}", "what", s->what, "limit_ms", (json_int_t)s->limit_ms));
	st = control_wait(c, zero_spoke, NULL, control_deadline(c, ANSWER_GRACE_MS), err);
	if (!st || c->over.status)
		return st;
	control_rank_text(c, 0, who, sizeof(who));
	error_set_cause(&why, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
			"%s did not answer at %s within %.1f s; last: %s", who, s->what,
			(s->limit_ms + ANSWER_GRACE_MS) / 1e3, c->peer[0].last);
	return control_over(c, &why, err);
}

static enum status await_zero(struct control *c, const struct step *s, struct error *err)
{
	unsigned silent_ms = s->told && s->limit_ms > SAY_MS ? SAY_MS : s->limit_ms;
	enum status st = control_wait(c, zero_spoke, NULL, control_deadline(c, silent_ms), err);

	if (!st || c->over.status || silent_ms == s->limit_ms)
		return st;
	log_info(c->log, LOG_TOPIC_RUN, "waiting for rank 0 to reach %s, %u s at most", s->what,
		 (s->limit_ms - silent_ms) / 1000);
	return control_wait(c, zero_spoke, NULL, control_deadline(c, s->limit_ms - silent_ms), err);
}

static enum status follow(struct control *c, const struct step *s, const json_t *mine, json_t **answer,
			  struct error *err)
{
	const struct error other = {STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED, NULL, 0,
				    "rank 0 sent the answer of another step"};
	enum wire_kind kind = WIRE_KIND_COUNT;
	enum status st;

	control_send_json(c, &c->peer[0], s->kind, json_deep_copy(mine));
	st = await_zero(c, s, err);
	if (st && !c->over.status)
		st = ask_who_is_late(c, s, err);
	if (st)
		return st;
	*answer = control_held_json(&c->peer[0], &kind);
	snprintf(c->peer[0].last, sizeof(c->peer[0].last), "%.63s", s->what);
	return kind == WIRE_GO ? STATUS_OK : control_over(c, &other, err);
}

/* Adds "what" to `mine`. Owner of *answer: caller; NULL on failure. */
static enum status take_step(struct control *c, const struct step *s, json_t *mine, json_t **answer,
			     struct error *err)
{
	enum status st;

	*answer = NULL;
	if (c->over.status)
		return control_over(c, &c->over, err);
	if (!mine || json_object_set_new(mine, "what", json_string(s->what)))
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a frame to the team");
	text_copy(c->at, sizeof(c->at), s->what);
	st = c->rank ? follow(c, s, mine, answer, err) : lead(c, s, mine, answer, err);
	text_copy(c->done, sizeof(c->done), c->at);
	*c->at = '\0';
	if (st) {
		json_decref(*answer);
		*answer = NULL;
	}
	return st;
}

static json_t *answer_line(struct control *c, json_t *const *all, struct error *err)
{
	unsigned most = 0, one;

	(void)err;
	for (unsigned r = 0; r < c->size; r++)
		if (json_member_count(&one, all[r], "work_ms", INT32_MAX) && one > most)
			most = one;
	return json_pack("{s:I}", "work_ms", (json_int_t)most);
}

enum status control_line(struct control *c, unsigned round, unsigned line, unsigned *work_ms,
			 unsigned limit_ms, struct error *err)
{
	struct step s = {.kind = WIRE_LINE, .limit_ms = limit_ms, .answer = answer_line};
	json_t *mine, *answer;
	enum status st;

	if (!c)
		return STATUS_OK;
	snprintf(s.what, sizeof(s.what), "line %u of round %u", line, round);
	mine = json_pack("{s:I}", "work_ms", (json_int_t)(work_ms ? *work_ms : 0));
	st = take_step(c, &s, mine, &answer, err);
	if (!st && work_ms)
		json_member_count(work_ms, answer, "work_ms", INT32_MAX);
	json_decref(mine);
	json_decref(answer);
	return st;
}

/* The worst status of all ranks, naming its rank. Different keys end the team. */
static json_t *answer_begin(struct control *c, json_t *const *all, struct error *err)
{
	const char *key = json_string_value(json_object_get(all[0], "key"));
	struct error worst = {0}, why = {0};
	char who[96], text[512];

	for (unsigned r = 0; r < c->size; r++) {
		const char *other = json_string_value(json_object_get(all[r], "key"));
		struct error one = {0};

		control_rank_text(c, r, who, sizeof(who));
		if (!key || !other || strcmp(key, other)) {
			error_set_cause(&why, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
					"%s begins another case than rank 0 as case %u: their suites differ",
					who, c->case_ordinal);
			control_over(c, &why, err);
			return NULL;
		}
		control_error_from(&one, json_object_get(all[r], "mine"));
		if (one.status > worst.status) {
			snprintf(text, sizeof(text), "%s: %.400s", who, one.text);
			error_clear(&worst);
			error_set_cause(&worst, one.status, one.cause, "%s", text);
		}
	}
	return json_pack("{s:o,s:i}", "agreed", control_error_json(&worst), "generation", (int)c->generation);
}

enum status control_begin(struct control *c, unsigned ordinal, const char *key, const struct error *mine,
			  struct error *agreed, unsigned *generation, unsigned limit_ms, struct error *err)
{
	struct step s = {.kind = WIRE_BEGIN, .limit_ms = limit_ms, .answer = answer_begin};
	json_t *said, *answer;
	enum status st;
	char hash[65];

	if (!c) {
		*agreed = *mine;
		*generation = 0;
		return STATUS_OK;
	}
	snprintf(s.what, sizeof(s.what), "begin of case %u", ordinal);
	c->case_ordinal = ordinal;
	c->fell = false;
	file_sha256(hash, key, strlen(key));
	said = json_pack("{s:s,s:o}", "key", hash, "mine", control_error_json(mine));
	st = take_step(c, &s, said, &answer, err);
	if (!st) {
		*agreed = (struct error){0};
		control_error_from(agreed, json_object_get(answer, "agreed"));
		json_member_count(&c->generation, answer, "generation", INT32_MAX);
		*generation = c->generation;
	}
	json_decref(said);
	json_decref(answer);
	return st;
}

/* After a worker fell, all ranks start workers of a new generation. */
static json_t *answer_end(struct control *c, json_t *const *all, struct error *err)
{
	(void)all, (void)err;
	if (c->fell)
		c->generation++;
	return json_pack("{s:s,s:i}", "ending", ending_name(c->fell ? c->fell_ending : ENDING_DONE), "rank",
			 c->fell ? (int)c->fell_rank : 0);
}

enum status control_end(struct control *c, enum ending mine, enum ending *worst, unsigned *rank,
			unsigned limit_ms, struct error *err)
{
	struct step s = {.kind = WIRE_END, .limit_ms = limit_ms, .answer = answer_end};
	json_t *said, *answer;
	enum status st;

	*worst = mine;
	*rank = 0;
	if (!c)
		return STATUS_OK;
	snprintf(s.what, sizeof(s.what), "end of case %u", c->case_ordinal);
	if (!c->rank && mine != ENDING_DONE && !c->fell) {
		c->fell = true;
		c->fell_rank = 0;
		c->fell_ending = mine;
		control_send_json(c, NULL, WIRE_FELL, json_pack("{s:i}", "case", (int)c->case_ordinal));
	}
	said = json_pack("{s:s}", "ending", ending_name(mine));
	st = take_step(c, &s, said, &answer, err);
	if (!st) {
		*worst = ENDING_DONE;
		ending_from_name(json_string_value(json_object_get(answer, "ending")), worst);
		json_member_count(rank, answer, "rank", (json_int_t)c->size - 1);
	}
	json_decref(said);
	json_decref(answer);
	return st;
}

static json_t *answer_part(struct control *c, json_t *const *all, struct error *err)
{
	(void)all;
	return control_read_clocks(c, true, err) ? NULL : shape_json(&c->shape);
}

enum status control_part(struct control *c, unsigned limit_ms, struct error *err)
{
	struct step s = {
		.kind = WIRE_PART, .what = "the end of the run", .limit_ms = limit_ms, .answer = answer_part};
	json_t *mine, *answer;
	enum status st;

	if (!c)
		return STATUS_OK;
	c->parting = true;
	mine = json_object();
	st = take_step(c, &s, mine, &answer, err);
	if (!st && c->rank)
		shape_clocks_take(&c->shape, answer);
	json_decref(mine);
	json_decref(answer);
	return st;
}

static bool all_sent(const struct control *c, const void *arg)
{
	(void)arg;
	for (unsigned i = 1; i < c->peers; i++)
		if (c->peer[i].ch.out_size)
			return false;
	return true;
}

static enum status share_from_zero(struct control *c, const void *bytes, size_t size, unsigned limit_ms,
				   struct error *err)
{
	struct error why = {0};
	struct text t = {0};
	enum status st;

	control_send_all(c, WIRE_SHARE, bytes, size);
	st = control_wait(c, all_sent, NULL, control_deadline(c, limit_ms), err);
	if (!st || c->over.status)
		return st;
	for (unsigned i = 1; i < c->peers; i++)
		if (c->peer[i].ch.out_size)
			text_addf(&t, "%s%u", t.size ? ", " : "", i);
	error_set_cause(&why, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
			"rank %.200s did not read %zu shared bytes within %.1f s", text_str(&t), size,
			limit_ms / 1e3);
	text_release(&t);
	return control_over(c, &why, err);
}

static enum status share_to_us(struct control *c, void *bytes, size_t size, unsigned limit_ms,
			       struct error *err)
{
	struct step s = {.what = "the bytes that rank 0 shares", .limit_ms = limit_ms};
	struct error why = {0};
	const struct held *h;
	enum status st = control_wait(c, zero_spoke, NULL, control_deadline(c, limit_ms), err);

	if (st && !c->over.status)
		st = ask_who_is_late(c, &s, err);
	if (st)
		return st;
	h = c->peer[0].first;
	if (h->kind == WIRE_SHARE && h->size == size)
		memcpy(bytes, h->payload, size);
	else
		error_set_cause(&why, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
				"rank 0 shared %zu bytes, and rank %u expects %zu", h->size, c->rank, size);
	control_drop_held(&c->peer[0]);
	return why.status ? control_over(c, &why, err) : STATUS_OK;
}

enum status control_share(struct control *c, void *bytes, size_t size, unsigned limit_ms, struct error *err)
{
	if (!c)
		return STATUS_OK;
	if (c->over.status)
		return control_over(c, &c->over, err);
	if (size > WIRE_FRAME_MAX)
		return error_set(err, STATUS_BAD_INPUT, "cannot share %zu bytes: the limit is %d", size,
				 WIRE_FRAME_MAX);
	return c->rank ? share_to_us(c, bytes, size, limit_ms, err)
		       : share_from_zero(c, bytes, size, limit_ms, err);
}

/* The object of each rank, by rank. */
static json_t *answer_gather(struct control *c, json_t *const *all, struct error *err)
{
	json_t *said = json_array();

	(void)err;
	for (unsigned r = 0; r < c->size; r++)
		json_array_append(said, all[r]);
	return json_pack("{s:o}", "all", said);
}

enum status control_gather(struct control *c, const char *what, json_t *mine, json_t **all, unsigned limit_ms,
			   struct error *err)
{
	const struct error few = {STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED, NULL, 0,
				  "rank 0 did not send the objects of all ranks"};
	struct step s = {.kind = WIRE_GATHER, .limit_ms = limit_ms, .answer = answer_gather, .told = true};
	json_t *answer = NULL;
	enum status st;

	if (!c) {
		*all = json_pack("[o]", mine);
		return *all ? STATUS_OK : error_errno(err, ENOMEM, "a frame to the team");
	}
	*all = NULL;
	text_copy(s.what, sizeof(s.what), what);
	st = take_step(c, &s, mine, &answer, err);
	if (!st && json_array_size(json_object_get(answer, "all")) != c->size)
		st = control_over(c, &few, err);
	if (!st)
		*all = json_incref(json_object_get(answer, "all"));
	json_decref(mine);
	json_decref(answer);
	return st;
}
