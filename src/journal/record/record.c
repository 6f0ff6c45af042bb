/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a record from the lines of a journal. The journal may come from a foreign source: parts of a wrong
 * form are ignored. If a run was resumed after a reboot, CLOCK_MONOTONIC began at zero again, so its times
 * are shifted to follow the earlier ones.
 */
#include "journal/record/record.h"
#include <limits.h>
#include <errno.h>
#include "core/json/member.h"
#include "core/text/text.h"
#include "journal/telemetry/telemetry_block.h"
#include "journal/journal.h"
#include "journal/record/merge.h"

struct builder {
	struct record *record;
	uint64_t shift_ns; /* added to every time of the lines that follow */
	size_t case_room;
	unsigned step;	    /* steps taken so far */
	size_t last;	    /* 1 + the case that began or ended last; 0: none has */
	enum status status; /* no memory, or an unknown schema; other faults in a line are ignored */
	struct error *err;
};

static bool u64_of(const json_t *object, const char *name, uint64_t *out)
{
	const json_t *v = json_object_get(object, name);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

static double number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name)); /* 0 if it is not a number */
}

/* Makes room for one more entry in a growing array; NULL: no memory, which b->status then says. */
static void *grown(struct builder *b, void *array, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 16;
	void *p;

	if (count < *room)
		return array;
	p = realloc(array, more * size);
	if (!p) {
		b->status = error_errno(b->err, ENOMEM, "%s: reading the record", b->record->dir);
		return NULL;
	}
	*room = more;
	return p;
}

/* Reads whether the plan skips the case. */
static void read_skip(struct record_case *c, const json_t *plan)
{
	const json_t *skip = json_object_get(plan, "skip");

	c->skip_reason = "";
	if (!json_is_object(skip))
		return;
	c->skipped = true;
	c->skip_status = STATUS_BUG;
	status_from_name(json_member_text(skip, "status"), &c->skip_status);
	cause_from_name(json_member_text(skip, "cause"), &c->skip_cause);
	c->skip_reason = json_member_text(skip, "reason");
}

static void add_case(struct builder *b, const json_t *plan, bool together, bool lockstep)
{
	struct record *r = b->record;
	const json_t *work = json_object_get(plan, "work");
	struct record_case *cases, *c;
	uint64_t id, round;

	if (!u64_of(plan, "case", &id) || id != r->case_count) /* ids are places in the plan */
		return;
	cases = grown(b, r->cases, r->case_count, &b->case_room, sizeof(*cases));
	if (!cases)
		return;
	r->cases = cases;
	c = &cases[r->case_count++];
	*c = (struct record_case){
		.id = (unsigned)id,
		.step = b->step,
		.key = json_member_text(plan, "key"),
		.probe = json_member_text(plan, "probe"),
		.engine = json_member_text(plan, "engine"),
		.target = json_member_text(plan, "target"),
		.where = json_member_text(plan, "target"),
		.phases = json_member_text(plan, "phases"),
		.group = json_member_text(plan, "group"),
		.limit = json_member_text(work, "limit"),
		.plan = plan,
		.reading = !strcmp(json_member_text(plan, "kind"), "reading"),
		.job = !strcmp(json_member_text(plan, "kind"), "job"),
		.together = together,
		.lockstep = lockstep,
		.round = u64_of(plan, "round", &round) && round <= UINT_MAX ? (unsigned)round : 0,
		.require = require_from_word(json_member_text(plan, "require")),
		.require_said = json_is_true(json_object_get(plan, "require_said")),
		.ending = ENDING_NOT_RUN,
		.work_flop = number_of(work, "flop"),
		.work_read = number_of(work, "read_bytes"),
		.work_write = number_of(work, "write_bytes"),
		.work_link = number_of(work, "link_bytes"),
		.work_messages = number_of(work, "messages"),
	};
	read_skip(c, plan);
}

static void add_steps(struct builder *b, const json_t *steps)
{
	size_t i, k;
	json_t *step, *plan;

	json_array_foreach((json_t *)steps, i, step)
	{
		bool together = json_is_true(json_object_get(step, "together"));
		bool lockstep = json_is_true(json_object_get(step, "lockstep"));

		json_array_foreach(json_object_get(step, "cases"), k, plan)
		{
			add_case(b, plan, together, lockstep);
		}
		b->step++;
	}
}

static void on_plan(struct builder *b, const json_t *body)
{
	struct record *r = b->record;

	if (r->plan) /* a resumed run may repeat the plan */
		return;
	r->plan = json_incref((json_t *)body);
	add_steps(b, json_object_get(body, "steps"));
}

/* Appends the added steps to the plan, which keeps them alive for the cases that borrow from them. */
static void on_extend(struct builder *b, const json_t *body)
{
	json_t *steps = json_object_get(body, "steps"), *all;

	if (!b->record->plan || !json_is_array(steps))
		return;
	all = json_object_get(b->record->plan, "steps");
	if (json_is_array(all) && !json_array_extend(all, steps))
		add_steps(b, steps);
}

static struct record_case *case_of(struct builder *b, const json_t *body)
{
	struct record *r = b->record;
	uint64_t id;

	return u64_of(body, "case", &id) && id < r->case_count ? &r->cases[id] : NULL;
}

static void record_drop_phases(struct record_case *c)
{
	for (size_t i = 0; i < c->phase_count; i++) {
		json_decref(c->phase[i].values);
		free(c->phase[i].ns);
	}
	free(c->phase);
	c->phase = NULL;
	c->phase_count = 0;
}

/* Finds or adds the case's phase of that name; NULL: no name, or no memory. */
static struct record_phase *phase_of(struct builder *b, struct record_case *c, const json_t *body)
{
	const char *name = json_member_text(body, "phase");
	struct record_phase *more;

	if (!*name || strlen(name) >= sizeof(more->name))
		return NULL;
	for (size_t i = 0; i < c->phase_count; i++)
		if (!strcmp(c->phase[i].name, name))
			return &c->phase[i];
	more = realloc(c->phase, (c->phase_count + 1) * sizeof(*more));
	if (!more) {
		b->status = error_errno(b->err, ENOMEM, "%s: reading the record", b->record->dir);
		return NULL;
	}
	c->phase = more;
	more += c->phase_count++;
	*more = (struct record_phase){0};
	text_copy(more->name, sizeof(more->name), name);
	return more;
}

static void on_begin(struct builder *b, const json_t *body, uint64_t t_ns)
{
	struct record_case *c = case_of(b, body);

	if (!c)
		return;
	record_drop_phases(c); /* a repeated attempt replaces one that was cut off */
	b->last = c->id + 1;
	c->begun = true;
	c->ended = false;
	c->ending = ENDING_CUT;
	c->status = STATUS_OK;
	c->cause = CAUSE_NONE;
	c->text[0] = '\0';
	c->t0_ns = c->t1_ns = t_ns;
}

static void on_phase(struct builder *b, const json_t *body)
{
	struct record_case *c = case_of(b, body);
	struct record_phase *p = c ? phase_of(b, c, body) : NULL;
	uint64_t t0, t1;

	if (!p || !u64_of(body, "t0", &t0) || !u64_of(body, "t1", &t1) || t1 < t0)
		return;
	p->t0_ns = t0 + b->shift_ns;
	p->t1_ns = t1 + b->shift_ns;
	p->has_window = true;
}

static void on_samples(struct builder *b, const json_t *body)
{
	struct record_case *c = case_of(b, body);
	struct record_phase *p = c ? phase_of(b, c, body) : NULL;
	const json_t *ns = json_object_get(body, "ns");
	size_t count = json_array_size(ns);
	double *all;

	if (!p || !count)
		return;
	all = realloc(p->ns, (p->ns_count + count) * sizeof(*all));
	if (!all) {
		b->status = error_errno(b->err, ENOMEM, "%s: reading the record", b->record->dir);
		return;
	}
	p->ns = all;
	for (size_t i = 0; i < count; i++) {
		const json_t *v = json_array_get(ns, i);

		if (json_is_number(v))
			p->ns[p->ns_count++] = json_number_value(v);
	}
	u64_of(body, "batch", &p->batch);
}

/* The worker's values, and later the supervisor's values from telemetry, are separate events and are merged
 * here. */
static void on_result(struct builder *b, const json_t *body)
{
	struct record_case *c = case_of(b, body);
	struct record_phase *p = c ? phase_of(b, c, body) : NULL;
	json_t *values = json_object_get(body, "values");

	if (!p || !json_is_object(values))
		return;
	if (!p->values)
		p->values = json_incref(values);
	else
		json_object_update(p->values, values);
}

static void on_end(struct builder *b, const json_t *body, uint64_t t_ns)
{
	struct record_case *c = case_of(b, body);

	if (!c)
		return;
	b->last = c->id + 1;
	c->ended = true;
	c->ending = ENDING_CUT;
	c->status = STATUS_BUG;
	c->cause = CAUSE_NONE;
	ending_from_name(json_member_text(body, "ending"), &c->ending);
	status_from_name(json_member_text(body, "status"), &c->status);
	cause_from_name(json_member_text(body, "cause"), &c->cause);
	text_copy(c->text, sizeof(c->text), json_member_text(body, "text"));
	c->t1_ns = t_ns;
}

static void on_telemetry(struct builder *b, const json_t *body)
{
	b->status =
		telemetry_block_read(body, &b->record->series, &b->record->series_count, b->shift_ns, b->err);
}

/* Refuses unknown schemas, because a later program may give other meanings to the same names. */
static enum status check_schema(const struct record *r, const json_t *body, struct error *err)
{
	const json_t *schema = json_object_get(body, "schema");
	json_int_t number = json_integer_value(schema); /* 0 if there is none */
	enum status st;
	char *shown;

	if (number >= 1 && number <= JOURNAL_SCHEMA)
		return STATUS_OK;
	shown = schema ? json_dumps(schema, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT) : NULL;
	st = error_set(err, STATUS_BAD_INPUT,
		       "%s/" JOURNAL_FILE
		       ": written in schema %.40s; this assay reads 1 to %d: use the version "
		       "that wrote it",
		       r->dir, shown ? shown : "(none)", JOURNAL_SCHEMA);
	free(shown);
	return st;
}

/* Whether the machine was rebooted between two `open` lines: by the kernel's boot id, else by the clock. */
static bool rebooted(const struct builder *b, const char *boot, uint64_t t_ns)
{
	const struct record *r = b->record;

	return *r->boot && *boot ? strcmp(r->boot, boot) != 0 : t_ns < r->t_last_ns;
}

static void resume(struct builder *b, const char *boot, uint64_t t_ns)
{
	struct record *r = b->record;
	bool reboot = rebooted(b, boot, t_ns);
	struct record_case *c = reboot && b->last && b->last <= r->case_count ? &r->cases[b->last - 1] : NULL;

	health_resumed(&r->health, reboot);
	if (c)
		c->reboot = c->ended ? REBOOT_BEHIND : REBOOT_WITHIN;
}

/* A second `open` is a resumed run. If the clock began at zero again, its time continues one second after the
 * last event. */
static void on_open(struct builder *b, const json_t *body, uint64_t t_ns)
{
	struct record *r = b->record;
	const char *boot = json_member_text(body, "boot");

	b->status = check_schema(r, body, b->err);
	if (r->open)
		resume(b, boot, t_ns);
	if (*boot)
		text_copy(r->boot, sizeof(r->boot), boot);
	b->shift_ns = t_ns < r->t_last_ns ? r->t_last_ns - t_ns + 1000000000u : 0;
	r->closed = false;
	if (!r->open)
		r->open = json_incref((json_t *)body);
}

static int visit(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body)
{
	struct builder *b = arg;
	struct record *r = b->record;

	r->cut_line++;
	if (type == JOURNAL_OPEN)
		on_open(b, body, t_ns);
	t_ns += b->shift_ns;
	if (!r->t_first_ns)
		r->t_first_ns = t_ns;
	r->t_last_ns = t_ns;
	switch (type) {
	case JOURNAL_MACHINE:
		if (!r->machine)
			r->machine = json_incref(json_object_get(body, "facts"));
		if (!*r->boot)
			text_copy(r->boot, sizeof(r->boot),
				  json_member_text(json_object_get(r->machine, "system"), "boot_id"));
		break;
	case JOURNAL_PLAN:
		on_plan(b, body);
		break;
	case JOURNAL_EXTEND:
		on_extend(b, body);
		break;
	case JOURNAL_BEGIN:
		on_begin(b, body, t_ns);
		break;
	case JOURNAL_PHASE:
		on_phase(b, body);
		break;
	case JOURNAL_SAMPLES:
		on_samples(b, body);
		break;
	case JOURNAL_RESULT:
		on_result(b, body);
		break;
	case JOURNAL_TELEMETRY:
		on_telemetry(b, body);
		break;
	case JOURNAL_HEALTH:
		b->status = health_read(&r->health, body, b->shift_ns, b->err);
		break;
	case JOURNAL_END:
		on_end(b, body, t_ns);
		break;
	case JOURNAL_CLOSE:
		r->closed = true;
		r->close_ending = ENDING_CUT;
		ending_from_name(json_member_text(body, "ending"), &r->close_ending);
		json_decref(r->close);
		r->close = json_incref((json_t *)body);
		break;
	case JOURNAL_OPEN:
	case JOURNAL_TYPE_COUNT:
		break;
	}
	return b->status != STATUS_OK;
}

enum status record_read_alone(struct record *r, const char *dir, struct error *err)
{
	struct builder b = {.record = r, .err = err};
	enum status st;

	*r = (struct record){.cut_line = 1}; /* grows by one with each line that was read */
	text_copy(r->dir, sizeof(r->dir), dir);
	st = journal_read(dir, visit, &b, &r->cut_bytes, err);
	if (!st)
		st = b.status;
	if (!st)
		st = health_finish(&r->health, err);
	if (st)
		record_release(r);
	return st;
}

enum status record_planned(struct record *r, const json_t *facts, const json_t *plan, struct error *err)
{
	struct builder b = {.record = r, .err = err};

	*r = (struct record){.machine = json_incref((json_t *)facts)};
	on_plan(&b, plan);
	if (b.status)
		record_release(r);
	return b.status;
}

enum status record_read(struct record *r, const char *dir, struct error *err)
{
	enum status st = record_read_alone(r, dir, err);

	if (!st)
		st = record_merge(r, err);
	if (st)
		record_release(r);
	return st;
}

enum status record_read_run(struct record *r, const char *dir, struct error *err)
{
	enum status st = record_read(r, dir, err);

	if (st || r->open)
		return st;
	record_release(r);
	return error_set(err, STATUS_BAD_INPUT, "%s/%s does not begin like the journal of a run", dir,
			 JOURNAL_FILE);
}

static void drop_series(struct series *series, size_t count)
{
	for (size_t i = 0; i < count; i++)
		series_release(&series[i]);
	free(series);
}

void record_release(struct record *r)
{
	for (size_t i = 0; i < r->case_count; i++) {
		record_drop_phases(&r->cases[i]);
		for (size_t k = 0; k < r->cases[i].rank_count; k++)
			json_decref(r->cases[i].ranks[k].values);
		free(r->cases[i].ranks);
	}
	free(r->cases);
	for (size_t n = 0; n < r->node_count; n++) {
		drop_series(r->node[n].series, r->node[n].series_count);
		health_release(&r->node[n].health);
		json_decref(r->node[n].machine);
	}
	free(r->node);
	drop_series(r->series, r->series_count);
	health_release(&r->health);
	json_decref(r->open);
	json_decref(r->close);
	json_decref(r->machine);
	json_decref(r->plan);
	json_decref(r->lent);
	*r = (struct record){0};
}
