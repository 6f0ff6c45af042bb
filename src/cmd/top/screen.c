/* SPDX-License-Identifier: Apache-2.0 */
/* assay top on a terminal: draws when something has arrived, at a key, and once per interval. */
#include <string.h>
#include "cmd/top/top.h"
#include "core/clock.h"

#define TOGETHER_S 0.1

struct session {
	const struct command_context *c;
	const struct top_opts *o;
	struct top_terminal terminal;
	struct top_nodes nodes;
	struct screen_view view;
	int ending; /* the process that the question is about; -1: none */
	bool left, told;
	uint64_t drawn_ns, played_ns;
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

/* Milliseconds until the next frame: values that are not read any more grow older. */
static unsigned until_next(const struct session *s)
{
	double passed = 1e-9 * (double)(clock_now_ns(clock_monotonic()) - s->drawn_ns);

	return passed >= every(s) ? 0 : (unsigned)(1e3 * (every(s) - passed)) + 1;
}

/* Readings that arrive shortly after each other are drawn together. */
static bool is_due(const struct session *s, bool news)
{
	double passed = 1e-9 * (double)(clock_now_ns(clock_monotonic()) - s->drawn_ns);

	return !until_next(s) || (news && passed >= TOGETHER_S);
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
	bool news = false;

	while (!st && !*s->c->stop && !s->left) {
		unsigned ms = until_next(s), soon = (unsigned)(1e3 * TOGETHER_S);
		bool keys;

		if (!top_terminal_wait(&s->terminal, s->nodes.fds, s->nodes.count,
				       news && ms > soon ? soon : ms))
			break;
		keys = take_keys(s);
		news = top_nodes_poll(&s->nodes) || news;
		news = play(s) || news;
		if (!keys && !is_due(s, news))
			continue;
		st = draw(s, err);
		news = false;
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
