/* SPDX-License-Identifier: Apache-2.0 */
#include "run/worker/rank_case.h"
#include <errno.h>
#include "core/text/text.h"
#include "run/timing/phases.h"

enum status part_prepare(struct part *p, struct error *err)
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

void part_release(struct part *p)
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

enum status part_verify(struct part *p, struct wrong *wrong, struct error *err)
{
	enum status st = p->c->probe->verify(p->state, wrong, err);

	return !st && wrong->count ? STATUS_MISMATCH : st; /* whatever it returned: wrong is wrong */
}

enum status part_finish(struct part *p, struct error *err)
{
	return p->c->probe->finish ? p->c->probe->finish(p->state, p->bench.out, err) : STATUS_OK;
}

/* -- what a follower is told -- */

static enum status begin(struct part *p, const struct team_command *c, struct error *err)
{
	struct sample *room = realloc(p->sample, (c->number ? c->number : 1) * sizeof(*room));

	if (!room)
		return error_errno(err, ENOMEM, "room for %llu samples", (unsigned long long)c->number);
	p->sample = room;
	p->told = 0;
	p->window = (struct window){
		.stamp = c->variant & PART_STAMP,
		.check = c->variant & PART_CHECK,
		.sample = room,
		.room = c->number,
	};
	return p->meter->ops->begin(p->meter, &p->window, err);
}

/* An error waits for the next answer; the ranks that wait for this one on their device hear of it at once. */
static void sample(struct part *p, const struct team_command *c)
{
	const struct meter_ops *ops = p->meter->ops;

	if (p->failed.status || !p->meter->window)
		return;
	if ((c->variant & PART_SINGLES ? ops->singles : ops->sample)(p->meter, c->batch, &p->failed))
		team_leave(p->team, &p->failed);
}

static enum status end_window(struct part *p, const struct team_command *c, struct error *err)
{
	if (p->failed.status)
		return error_set_cause(err, p->failed.status, p->failed.cause, "%s", p->failed.text);
	return c->word == PART_DRAIN ? p->meter->ops->drain(p->meter, err)
				     : p->meter->ops->end(p->meter, err);
}

/* What the supervisor is told should it hang in there. */
void part_stand(const struct part *p, uint32_t word)
{
	static const enum team_op op[PART_WORDS] = {
		[PART_PREPARE] = TEAM_OP_PREPARE, [PART_SELECT] = TEAM_OP_PREPARE,
		[PART_ONCE] = TEAM_OP_ENQUEUE,	  [PART_RAMP] = TEAM_OP_ENQUEUE,
		[PART_BEGIN] = TEAM_OP_ENQUEUE,	  [PART_SAMPLE] = TEAM_OP_ENQUEUE,
		[PART_DRAIN] = TEAM_OP_WAIT,	  [PART_END] = TEAM_OP_WAIT,
		[PART_VERIFY] = TEAM_OP_VERIFY,	  [PART_FINISH] = TEAM_OP_VERIFY,
		[PART_RELEASE] = TEAM_OP_RELEASE,
	};

	team_at(p->team->board, word < PART_WORDS ? op[word] : TEAM_OP_IDLE);
}

static enum status obey(struct part *p, const struct team_command *c, struct part_answer *a,
			struct error *err)
{
	const char *name;

	switch ((enum part_word)c->word) {
	case PART_PREPARE:
		return part_prepare(p, err);
	case PART_SELECT:
		return p->c->engine->select(p->state, c->variant, &name, err);
	case PART_ONCE:
		return p->meter->ops->once(p->meter, &a->ns, err);
	case PART_RAMP:
		return p->meter->ops->ramp(p->meter, c->number, &a->reached, err);
	case PART_BEGIN:
		return begin(p, c, err);
	case PART_SAMPLE:
		sample(p, c);
		return STATUS_OK;
	case PART_DRAIN:
	case PART_END:
		return end_window(p, c, err);
	case PART_VERIFY:
		return part_verify(p, &a->wrong, err);
	case PART_FINISH:
		return part_finish(p, err);
	case PART_RELEASE:
		part_release(p);
		return STATUS_OK;
	case PART_OUTCOME:
		return STATUS_OK;
	case PART_WORDS:
		break;
	}
	return error_set(err, STATUS_BUG, "rank 0 said a word that is none: %u", c->word);
}

void part_leave(struct part *p, enum status st, struct error *why)
{
	if (st != STATUS_MISMATCH)
		error_set(why, st, "%s", status_text(st));
	team_named(p->team, why);
	if (st != STATUS_MISMATCH)
		team_leave(p->team, why);
}

enum status part_obey(struct part *p, const struct team_command *c, struct part_answer *a)
{
	struct error why = {0};
	enum status st;

	*a = (struct part_answer){0};
	part_stand(p, c->word);
	st = obey(p, c, a, &why);
	if (!st || c->word == PART_SAMPLE)
		return STATUS_OK;
	part_leave(p, st, &why);
	a->status = st;
	a->cause = why.cause;
	text_copy(a->text, sizeof(a->text), why.text);
	return st;
}
