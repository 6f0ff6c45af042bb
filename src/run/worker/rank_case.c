/* SPDX-License-Identifier: Apache-2.0 */
#include "run/worker/rank_case.h"
#include <errno.h>
#include "core/text/text.h"
#include "run/timing/phases.h"

enum status rank_case_prepare(struct rank_case *p, struct error *err)
{
	const struct engine *e = p->c->engine;
	struct meter_spec spec = {.engine = e,
				  .opts = p->c->opts,
				  .bench = &p->bench,
				  .clock = p->w->clock,
				  .board = p->team ? p->team->board : p->w->board};
	enum status st = device_open(p->w, p->c, p->team, &p->bench, p->cpus, err);

	if (st)
		return st;
	p->bench.search_s = timing_search_s(p->c);
	p->bench.stop = p->w->stop;
	p->bench.out = result_create();
	p->state = calloc(1, e->state_size ? e->state_size : 1);
	if (!p->state || !p->bench.out)
		return error_errno(err, ENOMEM, "%s: its state", p->c->key);
	p->prepared = true;
	st = e->prepare(p->state, &p->bench, p->c->opts, err);
	if (st)
		return st;
	spec.state = p->state;
	return device_meter(&p->meter, p->c, &spec, err);
}

void rank_case_release(struct rank_case *p)
{
	meter_destroy(&p->meter);
	if (p->prepared)
		p->c->engine->release(p->state);
	free(p->state);
	result_destroy(p->bench.out);
	free(p->sample);
	p->state = NULL;
	p->bench.out = NULL;
	p->sample = NULL;
	p->prepared = false;
}

enum status rank_case_verify(struct rank_case *p, struct wrong *wrong, struct error *err)
{
	enum status st = p->c->probe->verify(p->state, wrong, err);

	/* wrong elements are a mismatch, whatever verify() returned */
	return !st && wrong->count ? STATUS_MISMATCH : st;
}

enum status rank_case_finish(struct rank_case *p, struct error *err)
{
	return p->c->probe->finish ? p->c->probe->finish(p->state, p->bench.out, err) : STATUS_OK;
}

/* -- commands that a follower executes -- */

static enum status begin(struct rank_case *p, const struct team_command *c, struct error *err)
{
	struct sample *room = realloc(p->sample, (c->number ? c->number : 1) * sizeof(*room));

	if (!room)
		return error_errno(err, ENOMEM, "room for %llu samples", (unsigned long long)c->number);
	p->sample = room;
	p->told = 0;
	p->window = (struct window){
		.stamp = c->variant & RANK_CASE_STAMP,
		.check = c->variant & RANK_CASE_CHECK,
		.sample = room,
		.room = c->number,
	};
	return p->meter->ops->begin(p->meter, &p->window, err);
}

/* An error is sent with the next answer. Other ranks whose devices wait for this one are told at once. */
static void sample(struct rank_case *p, const struct team_command *c)
{
	const struct meter_ops *ops = p->meter->ops;

	if (p->failed.status || !p->meter->window)
		return;
	if ((c->variant & RANK_CASE_SINGLES ? ops->singles : ops->sample)(p->meter, c->batch, &p->failed))
		team_leave(p->team, &p->failed);
}

static enum status end_window(struct rank_case *p, const struct team_command *c, struct error *err)
{
	if (p->failed.status)
		return error_set_cause(err, p->failed.status, p->failed.cause, "%s", p->failed.text);
	return c->word == RANK_CASE_DRAIN ? p->meter->ops->drain(p->meter, err)
					  : p->meter->ops->end(p->meter, err);
}

/* Records the current operation on the board, for the supervisor in case it hangs. */
void rank_case_stand(const struct rank_case *p, uint32_t word)
{
	static const enum team_op op[RANK_CASE_WORDS] = {
		[RANK_CASE_PREPARE] = TEAM_OP_PREPARE, [RANK_CASE_SELECT] = TEAM_OP_PREPARE,
		[RANK_CASE_ONCE] = TEAM_OP_ENQUEUE,    [RANK_CASE_RAMP] = TEAM_OP_ENQUEUE,
		[RANK_CASE_BEGIN] = TEAM_OP_ENQUEUE,   [RANK_CASE_SAMPLE] = TEAM_OP_ENQUEUE,
		[RANK_CASE_DRAIN] = TEAM_OP_WAIT,      [RANK_CASE_END] = TEAM_OP_WAIT,
		[RANK_CASE_VERIFY] = TEAM_OP_VERIFY,   [RANK_CASE_FINISH] = TEAM_OP_VERIFY,
		[RANK_CASE_RELEASE] = TEAM_OP_RELEASE,
	};

	team_at(p->team->board, word < RANK_CASE_WORDS ? op[word] : TEAM_OP_IDLE);
}

static enum status obey(struct rank_case *p, const struct team_command *c, struct rank_case_answer *a,
			struct error *err)
{
	const char *name;

	switch ((enum rank_case_word)c->word) {
	case RANK_CASE_PREPARE:
		return rank_case_prepare(p, err);
	case RANK_CASE_SELECT:
		return p->c->engine->select(p->state, c->variant, &name, err);
	case RANK_CASE_ONCE:
		return p->meter->ops->once(p->meter, &a->ns, err);
	case RANK_CASE_RAMP:
		return p->meter->ops->ramp(p->meter, c->number, &a->reached, err);
	case RANK_CASE_BEGIN:
		return begin(p, c, err);
	case RANK_CASE_SAMPLE:
		sample(p, c);
		return STATUS_OK;
	case RANK_CASE_DRAIN:
	case RANK_CASE_END:
		return end_window(p, c, err);
	case RANK_CASE_VERIFY:
		return rank_case_verify(p, &a->wrong, err);
	case RANK_CASE_FINISH:
		return rank_case_finish(p, err);
	case RANK_CASE_RELEASE:
		rank_case_release(p);
		return STATUS_OK;
	case RANK_CASE_OUTCOME:
		return STATUS_OK;
	case RANK_CASE_WORDS:
		break;
	}
	return error_set(err, STATUS_BUG, "rank 0 sent an unknown command: %u", c->word);
}

void rank_case_leave(struct rank_case *p, enum status st, struct error *why)
{
	if (st != STATUS_MISMATCH)
		error_set(why, st, "%s", status_text(st));
	team_named(p->team, why);
	if (st != STATUS_MISMATCH)
		team_leave(p->team, why);
}

enum status rank_case_obey(struct rank_case *p, const struct team_command *c, struct rank_case_answer *a)
{
	struct error why = {0};
	enum status st;

	*a = (struct rank_case_answer){0};
	rank_case_stand(p, c->word);
	st = obey(p, c, a, &why);
	if (!st || c->word == RANK_CASE_SAMPLE)
		return STATUS_OK;
	rank_case_leave(p, st, &why);
	a->status = st;
	a->cause = why.cause;
	text_copy(a->text, sizeof(a->text), why.text);
	return st;
}
