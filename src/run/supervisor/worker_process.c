/* SPDX-License-Identifier: Apache-2.0 */
/* One worker process: its start for a case, its messages and output, and its end by itself or by force. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include "core/text/redact.h"
#include "machine/machine.h"
#include "run/probe.h"
#include "run/supervisor/worker_pool.h"
#include "run/worker/device.h"
#include "run/supervisor/memory_release_wait.h"

enum { LEAVE_MS = 2000, LEAVE_TOGETHER_MS = 10000 /* with the other ranks' workers */ };

static void clear(struct worker *w)
{
	process_release(&w->p);
	lines_release(&w->in);
	if (w->board)
		team_board_destroy(&w->board, &w->board_fd);
	/* the next worker must know that this one died: its GPU memory may not be free yet */
	*w = (struct worker){.p = {.channel = -1, .output = -1}, .run = w->run, .fell = w->fell};
}

/* Keeps the end of its stdout and stderr. Never waits. */
static void hear_words(struct worker *w)
{
	char block[RUN_WORDS];
	ssize_t got;

	while (w->p.output >= 0 && (got = read(w->p.output, block, sizeof(block) - 1)) > 0) {
		size_t had = strlen(w->words), add = (size_t)got, room = sizeof(w->words) - 1;

		for (size_t i = 0; i < add; i++) /* the text goes into one line of a report */
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

void worker_end(struct run *r, struct worker *w, unsigned term_ms)
{
	if (!w->alive)
		return;
	if (!process_stop(&w->p, term_ms, RUN_KILL_MS))
		log_warn(r->o->log, LOG_TOPIC_RUN, "worker %d cannot be ended and is left behind",
			 (int)w->p.pid);
	clear(w);
}

void worker_hang_up(struct worker *w)
{
	if (w->p.channel >= 0)
		close(w->p.channel);
	w->p.channel = -1;
}

/* An idle worker exits when its channel closes. A worker that does not exit is ended. */
void worker_pool_dismiss(struct run *r, struct worker *w)
{
	unsigned limit = w == &r->slot ? LEAVE_TOGETHER_MS : LEAVE_MS;

	if (!w->alive)
		return;
	worker_hang_up(w);
	for (unsigned ms = 0; ms < limit && !process_poll(&w->p) && !run_stopping(r); ms += 5) {
		hear_words(w); /* a full pipe would block its exit */
		clock_sleep_ns(clock_monotonic(), 5000000);
	}
	worker_end(r, w, 500);
}

/* Records which of its ranks waits where. */
static void read_board(struct worker *w)
{
	if (!w->board)
		return;
	team_board_text(w->stood, sizeof(w->stood) - 100, w->board, TEAM_BOARD_RANKS,
			clock_now_ns(clock_monotonic()));
	text_copy(w->call, sizeof(w->call), team_board_call(w->board, TEAM_BOARD_RANKS));
}

/* Ends a case whose worker did not report the end. The worker has exited, or is stuck. */
static void case_fell(struct run *r, struct worker *w, enum ending ending, enum cause cause, const char *what)
{
	const struct bench_case *c = w->c;
	char text[512], who[64] = "", call[96] = "", words[sizeof(w->words) + 64];
	struct redact redact = {0};

	if (!*w->stood && !*w->call)
		read_board(w);
	if (r->team && r->o->control)
		team_own_name(r, who, sizeof(who));
	redact_word(&redact, words, sizeof(words), w->words);
	if (*w->call)
		snprintf(call, sizeof(call), "the call %s did not return: ", w->call);
	snprintf(text, sizeof(text), "%s%s%s%s%s%s%s%s%s%.*s", who, *who ? ": " : "", call, what,
		 *w->phase ? " in phase " : "", w->phase, *w->stood ? "; " : "", w->stood,
		 *w->words ? "; its last output: " : "", *w->stood ? 100 : 200, words);
	if (ending == ENDING_STUCK)
		worker_pool_quarantine(r, c, LOST_GONE);
	w->fell = true;
	run_end(r, c, ending, ending == ENDING_CANCELLED ? STATUS_CANCELLED : STATUS_NO_RESOURCE, cause, text,
		"");
	w->c = NULL;
}

void worker_ended_by_force(struct run *r, struct worker *w, const char *how)
{
	char what[192];

	snprintf(what, sizeof(what), "%s; %s", w->forced_text, how);
	case_fell(r, w, w->forced, w->forced_cause, what);
}

enum status worker_send(struct worker *w, json_t *line, struct error *err)
{
	return lines_send(w->p.channel, line, 17, NULL, err);
}

/* The NUMA node that the worker is bound to; -1: none. */
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
	const char *const env[] = {c->setting, NULL};
	struct error why = {0};
	enum status st;
	json_t *line;

	clear(w);
	if (*c->setting)
		spec.env = env;
	w->board = team_board_create(&w->board_fd);
	spec.shared = w->board ? w->board_fd : 0;
	spec.cpu_numa = node_of(r, &c->target);
	st = process_start(&w->p, &spec, &why);
	if (st && spec.cpu_numa >= 0 && c->target.kind == TARGET_GPU) {
		/* a CPU near the GPU is better, but the case measures the GPU */
		log_warn(r->o->log, LOG_TOPIC_RUN, "%s: its worker is not bound to the GPU's NUMA node: %s",
			 c->target_text, why.text);
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
	text_copy(w->place, sizeof(w->place), case_place(c));
	text_copy(w->setting, sizeof(w->setting), c->setting);
	line = json_pack("{s:O, s:I, s:i, s:b}", "machine", machine_json(r->machine), "seed",
			 (json_int_t)r->o->seed, "topics", r->o->log ? (int)r->o->log->topics : 0, "board",
			 w->board != NULL);
	if (line && c->team)
		json_object_set_new(line, "team", team_place_json(r));
	return worker_send(w, line, err);
}

static void arm_guards(struct run *r, const struct bench_case *c)
{
	for (unsigned i = 0; i < c->target.gpu_count; i++)
		if (c->target.gpu[i] < RUN_GPUS)
			thermal_guard_arm(&r->watch.guard[c->target.gpu[i]],
					  machine_gpu(r->machine, c->target.gpu[i]));
}

bool worker_fits(const struct worker *w, const struct bench_case *c)
{
	bool group = !strcmp(w->group, c->group) || (c->engine && c->engine->once);

	return !w->leaves && group && !strcmp(w->place, case_place(c)) && !strcmp(w->setting, c->setting);
}

enum status worker_ready(struct run *r, struct worker *w, const struct bench_case *c, struct error *err)
{
	if (w->alive && !worker_fits(w, c))
		worker_pool_dismiss(r, w);
	for (unsigned i = 0; !w->alive && w->fell && device_wanted(c) && i < c->target.gpu_count; i++)
		memory_release_wait(r, c->target.gpu[i]);
	w->fell = false;
	return w->alive ? STATUS_OK : hire(r, w, c, err);
}

static json_t *run_line(const struct run *r, const struct bench_case *c)
{
	json_t *line = json_pack("{s:o}", "run", case_json(c, r->machine));

	if (line && c->team)
		json_object_set_new(line, "links", team_links_json(r));
	return line;
}

void worker_give(struct run *r, struct worker *w, const struct bench_case *c)
{
	struct error err = {0};
	enum status st = worker_ready(r, w, c, &err);

	r->attempt[c->id]++;
	run_progress(r, c, "start");
	run_journal(r, JOURNAL_BEGIN,
		    json_pack("{s:i, s:i, s:i}", "case", (int)c->id, "attempt", (int)r->attempt[c->id], "pid",
			      (int)w->p.pid));
	if (!st)
		st = worker_send(w, run_line(r, c), &err);
	w->c = c;
	w->ready = w->told_to_go = w->garbled = w->ended_case = false;
	w->forced = ENDING_DONE;
	w->forced_cause = CAUSE_NONE;
	arm_guards(r, c);
	w->phase[0] = w->stood[0] = w->call[0] = '\0';
	w->kill_ns = 0;
	w->limit_ns = clock_now_ns(r->o->clock) + (uint64_t)c->limit_ms * 1000000u;
	if (st) { /* the worker died between two cases, or could not be started */
		case_fell(r, w, ENDING_CRASHED, err.cause ? err.cause : CAUSE_CRASHED, err.text);
		worker_end(r, w, 0);
	}
}

/* The worker has exited or closed its channel. Decides how its case ended. */
static void on_leave(struct run *r, struct worker *w)
{
	char how[96];

	for (unsigned ms = 0; ms < 500 && !process_poll(&w->p); ms += 5)
		clock_sleep_ns(clock_monotonic(), 5000000);
	hear_words(w);
	if (w->c && !w->p.ended)
		case_fell(r, w, ENDING_CRASHED, CAUSE_CRASHED,
			  "the worker closed its channel and did not exit");
	else if (w->c && w->forced != ENDING_DONE)
		worker_ended_by_force(r, w, "TERM ended it");
	else if (w->c) {
		process_wait_text(w->p.wait_status, how, sizeof(how));
		case_fell(r, w, ENDING_CRASHED, CAUSE_CRASHED, how);
	}
	worker_end(r, w, 0);
}

void worker_terminate(struct run *r, struct worker *w, enum ending ending, enum cause cause, const char *why,
		      uint64_t patience_ns)
{
	w->forced = ending;
	w->forced_cause = cause;
	text_copy(w->forced_text, sizeof(w->forced_text), why);
	read_board(w); /* before TERM changes the positions */
	if (!process_poll(&w->p))
		kill(-w->p.pid, SIGTERM);
	w->kill_ns = clock_now_ns(r->o->clock) + patience_ns;
}

void worker_force(struct run *r, struct worker *w)
{
	bool cancelled = w->forced == ENDING_CANCELLED;
	bool ended = process_stop(&w->p, 0, cancelled ? 300 : RUN_KILL_MS);

	lines_read(&w->in, w->p.channel, worker_line, w); /* reads everything that it sent before */
	hear_words(w);
	if (w->c && !ended)
		case_fell(r, w, ENDING_STUCK, CAUSE_STUCK, "KILL did not end it: it waits inside the kernel");
	else if (w->c)
		worker_ended_by_force(r, w, "KILL ended it");
	clear(w);
}

void worker_receive(struct run *r, struct worker *w)
{
	enum lines_state state = lines_read(&w->in, w->p.channel, worker_line, w);

	hear_words(w);
	if (w->garbled && w->c) {
		case_fell(r, w, ENDING_CRASHED, CAUSE_CRASHED,
			  "the worker wrote an invalid line to its channel");
		worker_end(r, w, 200);
	} else if (state != LINES_MORE) {
		on_leave(r, w);
	}
}
