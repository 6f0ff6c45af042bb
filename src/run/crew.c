/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of a step: one for cases in order, one each for cases together. The loop here waits for
 * whatever comes next (a line, some output, an end, a limit, a request to stop) and never for one of them
 * alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include "machine/machine.h"
#include "run/case_build.h"
#include "run/manners.h"
#include "run/supervisor.h"

enum { TICK_MS = 50, CREW_MAX = 256, LEAVE_MS = 2000 };

static uint64_t now(const struct run *r)
{
	return clock_now_ns(r->o->clock);
}

static void clear(struct worker *w)
{
	process_release(&w->p);
	lines_release(&w->in);
	/* That the one before was ended by force is for the next to know: its memory may not be back yet. */
	*w = (struct worker){.p = {.channel = -1, .output = -1}, .run = w->run, .fell = w->fell};
}

/* The end of what it says on stdout and stderr; never waits. */
static void hear_words(struct worker *w)
{
	char block[RUN_WORDS];
	ssize_t got;

	while (w->p.output >= 0 && (got = read(w->p.output, block, sizeof(block) - 1)) > 0) {
		size_t had = strlen(w->words), add = (size_t)got, room = sizeof(w->words) - 1;

		for (size_t i = 0; i < add; i++) /* they end in one line of a report */
			block[i] = block[i] == '\n'				? ' '
				   : block[i] && (unsigned char)block[i] >= ' ' ? block[i]
										: '?';
		if (had + add > room) {
			size_t drop = had + add - room;

			memmove(w->words, w->words + drop, had - drop);
			had -= drop;
		}
		memcpy(w->words + had, block, add);
		w->words[had + add] = '\0';
	}
}

static void quarantine(struct run *r, const struct bench_case *c, enum lost why)
{
	for (unsigned i = 0; i < c->target.gpu_count; i++)
		if (c->target.gpu[i] < RUN_GPUS && !r->lost[c->target.gpu[i]]) {
			r->lost[c->target.gpu[i]] = why;
			r->lost_by[c->target.gpu[i]] = c->id;
		}
}

static void send_home(struct run *r, struct worker *w, unsigned term_ms)
{
	if (!w->alive)
		return;
	if (!process_stop(&w->p, term_ms, RUN_KILL_MS))
		log_warn(r->o->log, LOG_TOPIC_RUN, "worker %d cannot be ended and is left behind",
			 (int)w->p.pid);
	clear(w);
}

/* An idle worker ends when its channel closes; one that does not is ended. */
void crew_dismiss(struct run *r, struct worker *w)
{
	if (!w->alive)
		return;
	close(w->p.channel);
	w->p.channel = -1;
	for (unsigned ms = 0; ms < LEAVE_MS && !process_poll(&w->p) && !run_stopping(r); ms += 5) {
		hear_words(w); /* or a full pipe would keep it */
		clock_sleep_ns(clock_monotonic(), 5000000);
	}
	send_home(r, w, 500);
}

/* A case whose worker did not report its end itself. The worker is gone, or left behind. */
static void case_fell(struct run *r, struct worker *w, enum ending ending, enum cause cause, const char *what)
{
	const struct bench_case *c = w->c;
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s%s%.200s", what, *w->phase ? " in phase " : "", w->phase,
		 *w->words ? "; its last words: " : "", w->words);
	if (ending == ENDING_STUCK)
		quarantine(r, c, LOST_GONE);
	w->fell = true;
	run_end(r, c, ending, ending == ENDING_CANCELLED ? STATUS_CANCELLED : STATUS_NO_RESOURCE, cause, text,
		"");
	w->c = NULL;
}

/* Told to end, it did, somehow. */
static void fell_forced(struct run *r, struct worker *w, const char *how)
{
	char what[192];

	snprintf(what, sizeof(what), "%s; %s", w->forced_text, how);
	case_fell(r, w, w->forced, w->forced_cause, what);
}

/* One line of a worker becomes an event of the journal. False: it is none of ours. */
static bool on_line(struct worker *w, const char *type, json_t *body)
{
	const json_t *id = json_object_get(body, "case");
	struct run *r = w->run;
	enum journal_type journal;

	if (!strcmp(type, "log")) {
		log_line(r->o->log, (enum log_level)(json_integer_value(json_object_get(body, "level")) & 3),
			 LOG_TOPIC_RUN, "%.400s", json_string_value(json_object_get(body, "text")));
		return true;
	}
	if (!w->c || !json_is_integer(id) || json_integer_value(id) != (json_int_t)w->c->id)
		return false;
	if (!strcmp(type, "at")) {
		const char *phase = json_string_value(json_object_get(body, "phase"));

		text_copy(w->phase, sizeof(w->phase), phase ? phase : "");
		if (!strcmp(w->phase, "burst") || !strcmp(w->phase, "sustained"))
			watch_begin(r);
		run_progress(r, w->c, w->phase);
		return true;
	}
	if (!strcmp(type, "ready")) {
		w->ready = true;
		return true;
	}
	if (!journal_type_from_name(type, &journal) ||
	    (journal != JOURNAL_PHASE && journal != JOURNAL_SAMPLES && journal != JOURNAL_RESULT))
		return false;
	if (journal == JOURNAL_PHASE) {
		const char *phase = json_string_value(json_object_get(body, "phase"));

		if (phase && (!strcmp(phase, "burst") || !strcmp(phase, "sustained")))
			watch_want(r, w->c, phase, (uint64_t)json_integer_value(json_object_get(body, "t0")),
				   (uint64_t)json_integer_value(json_object_get(body, "t1")));
	}
	if (journal == JOURNAL_RESULT) {
		const char *phase = json_string_value(json_object_get(body, "phase"));

		second_note(r, w->c, phase ? phase : "", json_object_get(body, "values"));
	}
	run_journal(r, journal, json_incref(body));
	return true;
}

static bool on_end(struct worker *w, const json_t *body)
{
	const json_t *id = json_object_get(body, "case");
	const char *text = json_string_value(json_object_get(body, "text"));
	const char *place = json_string_value(json_object_get(body, "place"));
	const char *name = json_string_value(json_object_get(body, "status"));
	const char *why = json_string_value(json_object_get(body, "cause"));
	bool on_gpu = w->c && w->c->target.kind == TARGET_GPU;
	enum status status;
	enum cause cause;

	if (!w->c || !json_is_integer(id) || json_integer_value(id) != (json_int_t)w->c->id || !name ||
	    !why || !status_from_name(name, &status) || !cause_from_name(why, &cause))
		return false;
	if (status == STATUS_LOST) {
		quarantine(w->run, w->c, LOST_GONE);
		w->leaves = true;
	}
	if (w->forced == ENDING_DONE || (status != STATUS_CANCELLED && w->forced == ENDING_CANCELLED))
		run_end(w->run, w->c, ENDING_DONE, status, cause, text ? text : "", place ? place : "");
	else if (w->forced == ENDING_CANCELLED)
		run_end(w->run, w->c, ENDING_CANCELLED, STATUS_CANCELLED, w->forced_cause, w->forced_text,
			"");
	else
		fell_forced(w->run, w, "it ended on TERM");
	w->c = NULL;
	w->ended_case = true;
	/* TERM ends it after its case; and a device call that failed may have left its context of no use. */
	w->leaves = w->leaves || w->forced != ENDING_DONE || (status == STATUS_VENDOR && on_gpu);
	return true;
}

static bool take_line(void *arg, const char *line, size_t size)
{
	struct worker *w = arg;
	json_t *body = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL),
	       *name = json_object_get(body, "type");
	char type[16] = "";
	bool ours = false;

	if (json_is_string(name) && json_string_length(name) < sizeof(type)) {
		text_copy(type, sizeof(type), json_string_value(name));
		json_object_del(body, "type");
		ours = !strcmp(type, "end") ? on_end(w, body) : on_line(w, type, body);
	}
	json_decref(body);
	w->garbled = !ours;
	return ours;
}

static enum status send_json(struct worker *w, json_t *line, struct error *err)
{
	char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	enum status st;
	size_t size;

	json_decref(line);
	if (!text)
		return error_errno(err, ENOMEM, "a line to a worker");
	size = strlen(text);
	text[size] = '\n'; /* instead of its NUL */
	st = lines_write(w->p.channel, text, size + 1, err);
	free(text);
	return st;
}

/* The NUMA node that the worker is bound to; -1: anywhere. */
static int node_of(const struct run *r, const struct target *t)
{
	const struct cpu *cpu = machine_cpu(r->machine);

	if (t->kind == TARGET_CPU)
		return t->numa;
	if (t->kind == TARGET_GPU && t->gpu_count && cpu->numa_count > 1)
		return (int)gpu_get(machine_gpu(r->machine, t->gpu[0]), GPU_FACT_numa_node, -1);
	return -1;
}

static enum status hire(struct run *r, struct worker *w, const struct bench_case *c, struct error *err)
{
	static const char *const argv[] = {NULL, "__worker", NULL};
	struct process_spec spec = {.argv = argv, .channel = true, .capture_output = true};
	struct error why = {0};
	enum status st;

	clear(w);
	spec.cpu_numa = node_of(r, &c->target);
	st = process_start(&w->p, &spec, &why);
	if (st && spec.cpu_numa >= 0 && c->target.kind == TARGET_GPU) {
		/* Near the GPU is better, but it is the GPU that is measured. */
		log_warn(r->o->log, LOG_TOPIC_RUN, "%s: its worker runs on any CPU: %s", c->target_text,
			 why.text);
		spec.cpu_numa = -1;
		error_clear(&why);
		st = process_start(&w->p, &spec, &why);
	}
	if (st) {
		*err = why;
		return st;
	}
	w->alive = true;
	fcntl(w->p.output, F_SETFL, O_NONBLOCK);
	text_copy(w->group, sizeof(w->group), c->group);
	text_copy(w->target, sizeof(w->target), c->target_text);
	return send_json(w,
			 json_pack("{s:O, s:I, s:i}", "machine", machine_json(r->machine), "seed",
				   (json_int_t)r->o->seed, "topics", r->o->log ? (int)r->o->log->topics : 0),
			 err);
}

static void arm_guards(struct run *r, const struct bench_case *c)
{
	for (unsigned i = 0; i < c->target.gpu_count; i++)
		if (c->target.gpu[i] < RUN_GPUS)
			guard_arm(&r->watch.guard[c->target.gpu[i]],
				  machine_gpu(r->machine, c->target.gpu[i]));
}

/* Gives the case to the worker, hiring one where there is none that fits. */
static void give(struct run *r, struct worker *w, const struct bench_case *c)
{
	struct error err = {0};
	enum status st = STATUS_OK;

	if (w->alive && (w->leaves || strcmp(w->group, c->group) || strcmp(w->target, c->target_text)))
		crew_dismiss(r, w);
	if (!w->alive && w->fell && c->engine && c->engine->streams && c->target.kind == TARGET_GPU)
		manners_memory_back(r, c->target.gpu[0]);
	w->fell = false;
	if (!w->alive)
		st = hire(r, w, c, &err);
	r->attempt[c->id]++;
	run_progress(r, c, "start");
	run_journal(r, JOURNAL_BEGIN,
		    json_pack("{s:i, s:i, s:i}", "case", (int)c->id, "attempt", (int)r->attempt[c->id], "pid",
			      (int)w->p.pid));
	if (!st)
		st = send_json(w, json_pack("{s:o}", "run", case_json(c, r->machine)), &err);
	w->c = c;
	w->ready = w->told_to_go = w->garbled = w->ended_case = false;
	w->forced = ENDING_DONE;
	w->forced_cause = CAUSE_NONE;
	arm_guards(r, c);
	w->phase[0] = '\0';
	w->kill_ns = 0;
	w->limit_ns = now(r) + (uint64_t)c->limit_ms * 1000000u;
	if (st) { /* it died between two cases, or could not be started */
		case_fell(r, w, ENDING_CRASHED, err.cause ? err.cause : CAUSE_CRASHED, err.text);
		send_home(r, w, 0);
	}
}

/* The process has ended, or its channel has: what was the case's end? */
static void on_leave(struct run *r, struct worker *w)
{
	char how[96];

	for (unsigned ms = 0; ms < 500 && !process_poll(&w->p); ms += 5)
		clock_sleep_ns(clock_monotonic(), 5000000);
	hear_words(w);
	if (w->c && !w->p.ended)
		case_fell(r, w, ENDING_CRASHED, CAUSE_CRASHED, "the worker closed its channel and went on");
	else if (w->c && w->forced != ENDING_DONE)
		fell_forced(r, w, "TERM ended it");
	else if (w->c) {
		process_wait_text(w->p.wait_status, how, sizeof(how));
		case_fell(r, w, ENDING_CRASHED, CAUSE_CRASHED, how);
	}
	send_home(r, w, 0);
}

/* TERM at once; the loop goes on hearing it until kill_ns. */
static void ask_to_end(struct run *r, struct worker *w, enum ending ending, enum cause cause, const char *why,
		       uint64_t patience_ns)
{
	w->forced = ending;
	w->forced_cause = cause;
	text_copy(w->forced_text, sizeof(w->forced_text), why);
	if (!process_poll(&w->p))
		kill(-w->p.pid, SIGTERM);
	w->kill_ns = now(r) + patience_ns;
}

/* TERM did not help. */
static void end_by_force(struct run *r, struct worker *w)
{
	bool cancelled = w->forced == ENDING_CANCELLED;
	bool ended = process_stop(&w->p, 0, cancelled ? 300 : RUN_KILL_MS);

	lines_read(&w->in, w->p.channel, take_line, w); /* nothing that was sent is lost */
	hear_words(w);
	if (w->c && !ended)
		case_fell(r, w, ENDING_STUCK, CAUSE_STUCK, "beyond KILL: it waits inside the kernel");
	else if (w->c)
		fell_forced(r, w, "KILL ended it");
	clear(w);
}

static void hear(struct run *r, struct worker *w)
{
	enum lines_state state = lines_read(&w->in, w->p.channel, take_line, w);

	hear_words(w);
	if (w->garbled && w->c) {
		case_fell(r, w, ENDING_CRASHED, CAUSE_CRASHED, "the worker wrote garbage to its channel");
		send_home(r, w, 200);
	} else if (state != LINES_MORE) {
		on_leave(r, w);
	}
}

/* The guard of its GPUs that asks for an end; NULL: none. */
static const struct guard *alarm_of(const struct run *r, const struct bench_case *c)
{
	for (unsigned i = 0; i < c->target.gpu_count; i++)
		if (c->target.gpu[i] < RUN_GPUS && r->watch.guard[c->target.gpu[i]].cause)
			return &r->watch.guard[c->target.gpu[i]];
	return NULL;
}

/* Limits, guards and requests to stop. */
static void watch_time(struct run *r, struct worker *w)
{
	const struct guard *alarm;
	uint64_t t = now(r);

	if (!w->alive || !w->c)
		return;
	alarm = alarm_of(r, w->c);
	if (run_stopping(r) && w->forced_cause != CAUSE_INTERRUPTED) {
		ask_to_end(r, w, ENDING_CANCELLED, CAUSE_INTERRUPTED, "stopped on request",
			   *r->o->stop > 1 ? 0 : RUN_STOP_NS);
	} else if (!w->kill_ns && alarm) {
		quarantine(r, w->c, LOST_HOT);
		ask_to_end(r, w, ENDING_CANCELLED, alarm->cause, alarm->text, RUN_TERM_NS);
	} else if (!w->kill_ns && t >= w->limit_ns) {
		ask_to_end(r, w, ENDING_TIMED_OUT, CAUSE_TIMED_OUT, "over its limit", RUN_TERM_NS);
	}
	if (w->kill_ns && (t >= w->kill_ns || (run_stopping(r) && *r->o->stop > 1)))
		end_by_force(r, w);
}

/* Waits for the next thing to happen to any of them or to the sampler, then attends to it. */
static void attend(struct run *r, struct worker *crew, size_t count)
{
	struct pollfd fds[2 * CREW_MAX + 1];
	nfds_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (crew[i].alive) {
			fds[n++] = (struct pollfd){.fd = crew[i].p.channel, .events = POLLIN};
			fds[n++] = (struct pollfd){.fd = crew[i].p.output, .events = POLLIN};
		}
	if (r->watch.alive)
		fds[n++] = (struct pollfd){.fd = r->watch.sampler.channel, .events = POLLIN};
	poll(fds, n, TICK_MS);
	for (size_t i = 0; i < count; i++)
		if (crew[i].alive)
			hear(r, &crew[i]);
	for (size_t i = 0; i < count; i++)
		watch_time(r, &crew[i]);
	watch_read(r);
}

static bool any_at_work(const struct worker *crew, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (crew[i].c)
			return true;
	return false;
}

/* One start signal, when each has either reported ready or fallen. */
static void start_together(struct worker *crew, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (crew[i].c && !crew[i].ready)
			return;
	for (size_t i = 0; i < count; i++)
		if (crew[i].c && !crew[i].told_to_go) {
			crew[i].told_to_go = true;
			/* A worker that cannot be told is dying: its end is seen in the next round. */
			send_json(&crew[i], json_pack("{s:b}", "go", 1), NULL);
		}
}

/* False: it is not to be run, and that has been recorded. */
static bool may_run(struct run *r, const struct bench_case *c)
{
	char text[160];

	if (c->skip || r->done[c->id])
		return false;
	for (unsigned i = 0; i < c->target.gpu_count; i++)
		if (c->target.gpu[i] < RUN_GPUS && r->lost[c->target.gpu[i]]) {
			snprintf(text, sizeof(text), "GPU %s was %s in case %u",
				 machine_gpu(r->machine, c->target.gpu[i])->pci,
				 r->lost[c->target.gpu[i]] == LOST_HOT ? "stopped for heat or a brake"
								       : "lost or stuck",
				 r->lost_by[c->target.gpu[i]]);
			run_end(r, c, ENDING_NOT_RUN, STATUS_UNAVAILABLE, CAUSE_QUARANTINED, text, "");
			return false;
		}
	return true;
}

static bool over(const struct run *r)
{
	return run_stopping(r) || r->status;
}

static void in_order(struct run *r, const struct step *step)
{
	struct worker *w = &r->keeper;

	w->run = r;
	for (size_t i = 0; i < step->count && !over(r); i++) {
		if (!may_run(r, &step->cases[i]))
			continue;
		give(r, w, &step->cases[i]);
		while (w->c && !r->status)
			attend(r, w, 1);
		if (w->alive && r->status)
			send_home(r, w, 500);
		/* A worker that lost its device has nothing to keep. */
		if (w->alive && step->cases[i].target.gpu_count &&
		    r->lost[step->cases[i].target.gpu[0] % RUN_GPUS])
			crew_dismiss(r, w);
	}
}

static void all_together(struct run *r, const struct step *step)
{
	size_t room = step->count < CREW_MAX ? step->count : CREW_MAX, count = 0;
	struct worker *crew = calloc(room, sizeof(*crew));

	if (!crew) {
		r->status = error_errno(r->err, ENOMEM, "%zu workers", room);
		return;
	}
	crew_dismiss(r, &r->keeper);
	for (size_t i = 0; i < step->count && count < room && !over(r); i++) {
		if (!may_run(r, &step->cases[i]))
			continue;
		if (count && step->cases[i].target.kind == TARGET_GPU)
			clock_sleep_ns(r->o->clock, RUN_STAGGER_NS);
		crew[count] = (struct worker){.run = r, .p = {.channel = -1, .output = -1}};
		give(r, &crew[count++], &step->cases[i]);
	}
	while (any_at_work(crew, count) && !r->status) {
		attend(r, crew, count);
		start_together(crew, count);
	}
	for (size_t i = 0; i < count; i++) {
		if (r->status)
			send_home(r, &crew[i], 500);
		crew_dismiss(r, &crew[i]);
	}
	free(crew);
}

void crew_step(struct run *r, const struct step *step)
{
	if (step->together)
		all_together(r, step);
	else
		in_order(r, step);
}
