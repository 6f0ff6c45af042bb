/* SPDX-License-Identifier: Apache-2.0 */
/* assay top on a terminal: draws once for each round of readings, at a key, and at least about once a second.
 */
#include <string.h>
#include "cmd/top/top.h"
#include "core/clock.h"

/* In the first seconds, sources and GPUs answer one by one. Later, one frame per round is enough. */
#define FIRST_S 3.0
#define TOGETHER_S 0.1
/* A round may come a little early, and a frame without news waits a little for a late round. */
#define EARLY 0.9
#define LATE_S 0.15

struct session {
	const struct command_context *c;
	const struct top_opts *o;
	struct top_terminal terminal;
	struct top_nodes nodes;
	struct screen_view view;
	int ending; /* the process that the question is about; -1: none */
	bool left, told;
	uint64_t began_ns, drawn_ns, news_ns, played_ns; /* news_ns: when the last round was drawn */
};

static void say(struct session *s, const struct error *err)
{
	text_copy(s->view.message, sizeof(s->view.message), err->text);
}

static void take_key(struct session *s, struct screen_event e)
{
	struct error err = {0};

	switch (screen_key(&s->view, s->nodes.shown, s->nodes.count, &s->terminal.screen, e)) {
	case SCREEN_NOTHING:
		break;
	case SCREEN_QUIT:
		s->left = true;
		break;
	case SCREEN_ASK_END:
		s->ending = top_end_ask(&s->view, &s->nodes.shown[s->view.node]);
		break;
	case SCREEN_END:
		top_end(&s->view, s->ending);
		s->ending = -1;
		break;
	case SCREEN_KEEP:
		if (s->ending >= 0)
			close(s->ending);
		s->ending = -1;
		break;
	case SCREEN_SEEK:
		if (top_nodes_seek(&s->nodes, s->view.at, &err))
			say(s, &err);
		break;
	}
}

/* Tells once what is wrong with a recording. */
static void tell_problem(struct session *s)
{
	const char *problem = top_nodes_problem(&s->nodes);

	if (!problem || s->told)
		return;
	s->told = true;
	text_copy(s->view.message, sizeof(s->view.message), problem);
}

static enum status draw(struct session *s, struct error *err)
{
	tell_problem(s);
	top_nodes_keep(&s->nodes, s->view.page == SCREEN_GRAPH ? s->view.row : CATALOGUE_COUNT);
	s->view.replay = s->nodes.replay != NULL;
	s->view.at = s->nodes.at;
	s->view.length = s->nodes.length;
	s->drawn_ns = clock_now_ns(clock_monotonic());
	return top_terminal_show(&s->terminal, &s->view, s->nodes.shown, s->nodes.count, err);
}

/* Seconds between two frames without news. */
static double every(const struct session *s)
{
	return s->o->interval > 1 ? 1 : s->o->interval;
}

/* A recording goes on by the time that has passed since it did so last. */
static bool play(struct session *s)
{
	uint64_t now = clock_now_ns(clock_monotonic());
	double passed = s->played_ns ? 1e-9 * (double)(now - s->played_ns) : 0;
	struct error err = {0};

	if (passed > 0 && passed < every(s))
		return false;
	s->played_ns = now;
	if (!s->nodes.replay || s->view.paused || s->nodes.at >= s->nodes.length)
		return false;
	if (top_nodes_seek(&s->nodes, s->nodes.at + passed, &err)) {
		say(s, &err);
		s->view.paused = true;
	}
	return true;
}

static double since(uint64_t t_ns)
{
	return 1e-9 * (double)(clock_now_ns(clock_monotonic()) - t_ns);
}

/* Milliseconds until the next frame without news: values that are not read any more grow older. */
static unsigned until_next(const struct session *s)
{
	double passed = since(s->drawn_ns), limit = every(s) + (s->nodes.replay ? 0 : LATE_S);

	return passed >= limit ? 0 : (unsigned)(1e3 * (limit - passed)) + 1;
}

/* `fresh` says that readings have just arrived, and `waiting` that some are not drawn yet. These are drawn
 * with the next round, so that the frames stay in step with the rounds. */
static bool is_due(const struct session *s, bool fresh, bool waiting)
{
	if (!until_next(s))
		return true;
	if (s->nodes.replay || since(s->began_ns) < FIRST_S)
		return waiting && since(s->drawn_ns) >= TOGETHER_S;
	return fresh && since(s->news_ns) >= EARLY * s->o->interval;
}

/* Milliseconds that may pass before something must be looked at. */
static unsigned patience(const struct session *s, bool waiting)
{
	unsigned ms = until_next(s), soon = (unsigned)(1e3 * TOGETHER_S);

	return waiting && ms > soon && (s->nodes.replay || since(s->began_ns) < FIRST_S) ? soon : ms;
}

static bool take_keys(struct session *s)
{
	struct screen_event e;
	bool any = false;

	while (!s->left && (e = s->terminal.module->key()).key != SCREEN_KEY_NONE) {
		take_key(s, e);
		any = true;
	}
	return any;
}

static enum status show(struct session *s, struct error *err)
{
	enum status st = draw(s, err);
	bool waiting = false;

	s->began_ns = s->news_ns = s->drawn_ns;
	while (!st && !*s->c->stop && !s->left) {
		bool keys, fresh, due;

		if (!top_terminal_wait(&s->terminal, s->nodes.fds, s->nodes.count, patience(s, waiting)))
			break;
		fresh = top_nodes_poll(&s->nodes);
		fresh = play(s) || fresh;
		waiting = waiting || fresh;
		due = is_due(s, fresh, waiting);
		/* A change of size counts as a key. If its signal arrives elsewhere, the wait does not tell
		 * it. */
		keys = (s->terminal.typed || due) && take_keys(s);
		if (!keys && !due)
			continue;
		st = draw(s, err);
		if (waiting)
			s->news_ns = s->drawn_ns;
		waiting = false;
	}
	return st;
}

int top_screen(const struct command_context *c, const struct top_opts *o)
{
	struct session s = {.c = c, .o = o, .ending = -1};
	struct error err = {0};
	enum status st, closed;

	s.view = (struct screen_view){.sort = o->sort, .theme = top_theme(o, true), .only_pid = o->pid};
	text_copy(s.view.filter, sizeof(s.view.filter), o->filter ? o->filter : "");
	st = top_terminal_open(&s.terminal, &err);
	if (!st)
		st = top_nodes_open(&s.nodes, o, &err);
	if (!st) {
		s.view.page = s.nodes.count > 1 ? SCREEN_FLEET : SCREEN_NODE;
		st = show(&s, &err);
	}
	top_terminal_close(&s.terminal);
	closed = top_nodes_close(&s.nodes, st ? NULL : &err);
	st = st ? st : closed;
	if (s.ending >= 0)
		close(s.ending);
	if (!st)
		return EXIT_PASS;
	log_error(c->log, LOG_TOPIC_MACHINE, "%s%s", err.text,
		  err.status == STATUS_UNAVAILABLE ? "; assay top --once needs no screen" : "");
	return command_code(err.status);
}
