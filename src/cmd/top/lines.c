/* SPDX-License-Identifier: Apache-2.0 */
/* assay top without a screen: once, as lines, as JSON. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/shared/show.h"
#include "cmd/top/top.h"
#include "core/clock.h"
#include "watch/screen/lists.h"

enum {
	ONCE_ROWS_MIN = 8,
	WAIT_MS_MAX = 1000, /* a feed wants to be heard every 5 s */
	OTHERS_MS = 2000    /* that lines wait for the other nodes after the first one is ready */
};

static void wait_for_data(struct top_nodes *n, unsigned ms)
{
	poll(n->fds, (nfds_t)n->count, (int)ms);
	top_nodes_poll(n);
}

/* Each source has answered twice, or has said why it does not. */
static bool all_answered(const struct watch_state *s)
{
	for (unsigned i = 0; i < s->source_count; i++)
		if (!s->source[i].heard_ns && !s->source[i].why)
			return false;
	return s->source_count && s->readings >= 2 * (uint64_t)s->source_count;
}

/* True once the node has given two readings of everything that answers, so that rates are known. */
static bool is_ready(const struct screen_node *n)
{
	return n->why || all_answered(n->state);
}

/* Waits until all nodes are ready, at most for the limit of a source and two intervals. If lines go on
 * without an end, a slow node does not delay those of the others. */
static void wait_until_ready(const struct command_context *c, const struct top_opts *o, struct top_nodes *n)
{
	uint64_t until = clock_now_ns(clock_monotonic()) + (uint64_t)(1e9 * (2 * o->interval + TOP_FIRST_S));
	bool endless = !o->once && !o->count, waits_less = false;
	size_t ready = 0, answered;

	while (ready < n->count && !*c->stop && clock_now_ns(clock_monotonic()) < until) {
		wait_for_data(n, 50);
		ready = answered = 0;
		for (size_t i = 0; i < n->count; i++) {
			ready += is_ready(&n->shown[i]);
			answered += is_ready(&n->shown[i]) && !n->shown[i].why;
		}
		if (endless && answered && !waits_less) {
			uint64_t soon = clock_now_ns(clock_monotonic()) + OTHERS_MS * 1000000ull;

			until = soon < until ? soon : until;
			waits_less = true;
		}
	}
}

/* As many rows as the page can use. */
static unsigned rows_for(const struct screen_node *n)
{
	size_t rows = 16;

	rows += 2 * (n->state->of_scope[METRIC_SCOPE_GPU] + n->state->of_scope[METRIC_SCOPE_GPU_INSTANCE]);
	rows += 4 * n->state->of_scope[METRIC_SCOPE_RUN] + 2 * n->state->of_scope[METRIC_SCOPE_PROCESS];
	return rows < SCREEN_ROWS_MAX ? (unsigned)rows : SCREEN_ROWS_MAX;
}

/* Prints cells without the empty lines and the keys at their end. */
static bool print_cells(struct screen *s, const struct top_opts *o, bool colour)
{
	enum screen_theme theme = top_theme(o, colour && o->theme);
	struct text all = {0};

	screen_text(&all, s, theme, theme == SCREEN_THEME_mono ? SCREEN_MONO : SCREEN_256);
	while (all.size > 1 && all.data[all.size - 1] == '\n' && all.data[all.size - 2] == '\n')
		all.data[--all.size] = '\0';
	show_text(&all, UTF8_KEEP_COLOUR);
	text_release(&all);
	return show_flush();
}

static bool print_page(const struct command_context *c, const struct top_opts *o, struct screen_view *v,
		       const struct top_nodes *n, unsigned rows)
{
	struct screen s = {0};
	struct error err = {0};
	bool shown = !screen_resize(&s, show_columns(), rows, &err);

	if (shown) {
		screen_draw(&s, v, n->shown, n->count);
		shown = print_cells(&s, o, c->colour);
	} else {
		log_error(c->log, LOG_TOPIC_MACHINE, "%s", err.text);
	}
	screen_release(&s);
	return shown;
}

/* The page of all nodes; of one that the filter leaves alone, or that is alone, its own page. */
static void print_pages(const struct command_context *c, const struct top_opts *o, struct top_nodes *n)
{
	struct screen_view v = {.page = SCREEN_NODE, .sort = o->sort, .only_pid = o->pid, .printed = true};
	struct screen_summary *list;
	size_t count;

	text_copy(v.filter, sizeof(v.filter), o->filter ? o->filter : "");
	list = n->count > 1 ? screen_fleet_make(&count, &v, n->shown, n->count) : NULL;
	if (list && count == 1) {
		v.node = list[0].index;
		v.filter[0] = '\0';
	} else if (n->count > 1) {
		v.page = SCREEN_FLEET;
	}
	free(list);
	print_page(c, o, &v, n,
		   v.page == SCREEN_FLEET ? (unsigned)n->count + ONCE_ROWS_MIN : rows_for(&n->shown[v.node]));
}

/* One line, or one JSON object, per node. False: nobody reads any more. */
static bool print_lines(const struct top_opts *o, const struct top_nodes *n)
{
	bool shown = true;

	for (size_t i = 0; i < n->count && shown; i++) {
		struct text line = {0};
		json_t *state;

		if (o->json) {
			state = top_json(&n->shown[i]);
			shown = show_json(state, JSON_COMPACT | JSON_REAL_PRECISION(12));
			json_decref(state);
			continue;
		}
		screen_line(&line, &n->shown[i]);
		text_add(&line, "\n");
		show_text(&line, UTF8_KEEP_NOTHING);
		text_release(&line);
	}
	return show_flush() && shown;
}

/* A recording goes on by one interval per line, without waiting. False: it is at its end. */
static bool step(const struct top_opts *o, struct top_nodes *n, uint64_t until,
		 const volatile sig_atomic_t *stop, struct error *err)
{
	uint64_t now;

	if (n->replay)
		return n->at < n->length && !top_nodes_seek(n, n->at + o->interval, err);
	while (!*stop && (now = clock_now_ns(clock_monotonic())) < until)
		wait_for_data(n, until - now < WAIT_MS_MAX * 1000000ull
					 ? (unsigned)((until - now) / 1000000) + 1
					 : WAIT_MS_MAX);
	return !*stop && !top_nodes_ended(n);
}

/* False: a recording could not be read to its end, which is logged. */
static bool print_again(const struct command_context *c, const struct top_opts *o, struct top_nodes *n)
{
	uint64_t next = clock_now_ns(clock_monotonic());
	uint32_t wanted = o->count ? o->count : UINT32_MAX;
	struct error err = {0};

	for (uint32_t shown = 0; shown < wanted && !*c->stop; shown++) {
		next += (uint64_t)(1e9 * o->interval);
		if (!print_lines(o, n))
			return true;
		if (shown + 1 < wanted && !step(o, n, next, c->stop, &err))
			break;
	}
	if (err.status)
		log_error(c->log, LOG_TOPIC_MACHINE, "%s", err.text);
	return !err.status;
}

static int code_of(const struct top_nodes *n)
{
	int code = EXIT_PASS;

	for (size_t i = 0; i < n->count; i++) {
		if (!n->shown[i].state->count || (!n->replay && n->shown[i].why))
			code = EXIT_INCONCLUSIVE;
	}
	return code;
}

int top_lines(const struct command_context *c, const struct top_opts *o)
{
	struct top_nodes n = {0};
	struct error err = {0};
	enum status st = top_nodes_open(&n, o, &err);
	bool whole = true;
	int code;

	if (st) {
		log_error(c->log, LOG_TOPIC_MACHINE, "%s", err.text);
		code = command_code(err.status);
		goto out;
	}
	if (!n.replay)
		wait_until_ready(c, o, &n);
	if (o->once && !o->json)
		print_pages(c, o, &n);
	else if (o->once)
		print_lines(o, &n);
	else
		whole = print_again(c, o, &n);
	code = !whole ? EXIT_INCONCLUSIVE : *c->stop && !o->once ? EXIT_PASS : code_of(&n);
	if (whole && top_nodes_problem(&n))
		log_warn(c->log, LOG_TOPIC_MACHINE, "%s", top_nodes_problem(&n));
out:
	if (top_nodes_close(&n, st ? NULL : &err) && !st) {
		log_error(c->log, LOG_TOPIC_MACHINE, "%s", err.text);
		code = EXIT_INCONCLUSIVE;
	}
	return code;
}
