/* SPDX-License-Identifier: Apache-2.0 */
/* assay top nccl, nvlink, ib, links: the NCCL settings, and the state and traffic of NVLinks and InfiniBand
 * or RoCE ports. */
#include "cmd/top/links/links.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/top/top.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "machine/nccl/settings.h"
#include "team/launcher/place.h"

enum { PART_NCCL = 1, PART_NVLINK = 2, PART_IB = 4, PART_ALL = 7 };
enum { STEP_MS = 20 };

struct links {
	const struct top_opts *o;
	const struct command_context *c;
	unsigned parts;
	bool again;		      /* shows more than one state */
	struct top_terminal terminal; /* open if the states are shown on a screen */
	struct screen_view view;
	struct text lines; /* what the screen shows */
	char title[96];
	bool left; /* the user ended the screen */
	struct machine *machine;
	struct expectations *expectations;
	struct links_feed nvlink, ib;
	char node[128]; /* name of the node if launched as ranks; "": alone */
	json_t *nccl;	/* read once at the beginning: a process's environment does not change later */
	json_t *state;	/* the last state shown */
};

static enum status check_options(const struct top_opts *o, unsigned parts, struct error *err)
{
	if (o->machine && o->count > 1)
		return error_set(err, STATUS_BAD_INPUT,
				 "--count and --machine cannot be combined: a recording does not change");
	if (o->machine && o->pid)
		return error_set(err, STATUS_BAD_INPUT,
				 "--pid and --machine cannot be combined: a recording has no processes");
	if (o->pid && !(parts & PART_NCCL))
		return error_set(err, STATUS_BAD_INPUT, "--pid works only with nccl and links, not with %s",
				 o->what);
	return STATUS_OK;
}

static enum status read_nccl(struct links *w, struct error *err)
{
	const json_t *facts = machine_json(w->machine);
	json_t *environment = json_incref(json_object_get(facts, "environment"));
	json_t *files = json_incref(json_object_get(facts, "nccl_files"));
	enum status st = STATUS_OK;

	if (w->o->pid) {
		json_decref(environment);
		json_decref(files);
		environment = files = NULL;
		st = nccl_process_read((long)w->o->pid, &environment, &files, err);
	}
	if (!st)
		w->nccl = links_nccl(environment, files, facts, w->expectations);
	if (!st && w->o->pid)
		json_object_set_new(w->nccl, "pid", json_integer((json_int_t)w->o->pid));
	json_decref(environment);
	json_decref(files);
	return st;
}

/* The sys folder: a container may have the host's elsewhere, and tests use their own. */
static const char *sys_folder(void)
{
	const char *stated = getenv("ASSAY_SYS");

	return stated && *stated ? stated : "/sys";
}

static enum status start_feeds(struct links *w, struct error *err)
{
	enum status st = STATUS_OK;

	if (w->o->machine)
		return st;
	if (w->parts & PART_NVLINK)
		machine_tell_suspended(w->c->log);
	if (w->parts & PART_NVLINK)
		st = links_feed_start(&w->nvlink, "nvlink", w->o->interval, NULL, err);
	if (!st && w->parts & PART_IB)
		st = links_feed_start(&w->ib, "ib", w->o->interval, sys_folder(), err);
	return st;
}

/* The previous answer. None if the helper has ended, because its rates would be outdated. */
static const json_t *earlier(const struct links_feed *f)
{
	return f->running ? f->before : NULL;
}

/* Adds the feed's own error or waiting message to its part. */
static json_t *with_why(json_t *part, const struct links_feed *f)
{
	char waiting[96];

	if (f->why[0]) {
		json_object_set_new(part, "why", json_string(f->why));
	} else if (f->running && !f->now) {
		snprintf(waiting, sizeof(waiting), "waiting for the first answer, %.0f s so far",
			 1e-9 * (double)(clock_now_ns(clock_monotonic()) - f->heard_ns));
		json_object_set_new(part, "why", json_string(waiting));
	}
	return part;
}

static json_t *nvlink_part(struct links *w)
{
	json_t *recorded, *part;

	if (!w->o->machine)
		return with_why(links_nvlink(earlier(&w->nvlink), w->nvlink.now, w->machine), &w->nvlink);
	recorded = links_recorded_nvlink(w->machine);
	part = links_nvlink(NULL, recorded, w->machine);
	json_decref(recorded);
	return part;
}

static json_t *ib_part(struct links *w)
{
	json_t *recorded, *part;

	if (!w->o->machine)
		return with_why(links_ib(earlier(&w->ib), w->ib.now), &w->ib);
	recorded = links_recorded_ib(w->machine);
	part = links_ib(NULL, recorded);
	json_decref(recorded);
	return part;
}

static void take_state(struct links *w)
{
	char now[32];
	json_t *state;

	clock_wall_text(now, sizeof(now));
	state = json_pack("{s:s}", "t", now);
	if (*w->node)
		json_object_set_new(state, "node", json_string(w->node));
	if (w->nccl)
		json_object_set(state, "nccl", w->nccl);
	if (w->parts & PART_NVLINK)
		json_object_set_new(state, "nvlink", nvlink_part(w));
	if (w->parts & PART_IB)
		json_object_set_new(state, "ib", ib_part(w));
	json_decref(w->state);
	w->state = state;
}

static void print_tables(const struct links *w)
{
	struct text t = {0};

	if (*w->node)
		text_addf(&t, "node %s\n\n", w->node);
	links_text(&t, w->state, w->parts == PART_NVLINK);
	show_text(&t, UTF8_KEEP_NOTHING);
	text_release(&t);
}

/* Draws the state on the screen. False: it cannot be drawn. */
static bool draw(struct links *w)
{
	static const struct watch_state nothing;
	const struct screen_node node = {.name = "", .state = &nothing};
	struct error err = {0};

	text_release(&w->lines);
	links_text(&w->lines, w->state, w->parts == PART_NVLINK);
	snprintf(w->title, sizeof(w->title), "assay top %s  %s  every %.3g s", w->o->what,
		 json_string_value(json_object_get(w->state, "t")), w->o->interval);
	w->view.lines = text_str(&w->lines);
	w->view.title = w->title;
	return !top_terminal_show(&w->terminal, &w->view, &node, 1, &err);
}

/* Takes the keys that are there. False: the user ends it. */
static bool take_keys(struct links *w)
{
	static const struct watch_state nothing;
	const struct screen_node node = {.name = "", .state = &nothing};
	struct screen_event e;

	while ((e = w->terminal.module->key()).key != SCREEN_KEY_NONE) {
		if (screen_key(&w->view, &node, 1, &w->terminal.screen, e) == SCREEN_QUIT)
			return false;
		if (w->state && !draw(w))
			return false;
	}
	return true;
}

/* False if nobody reads the output any more. */
static bool show_state(struct links *w)
{
	struct text line = {0};
	bool shown = true;

	if (w->o->json) {
		shown = show_json(w->state, JSON_COMPACT | JSON_REAL_PRECISION(12));
	} else if (w->terminal.module) {
		return draw(w);
	} else if (w->again) {
		links_line(&line, w->state);
		show_text(&line, UTF8_KEEP_NOTHING);
		text_release(&line);
	} else {
		print_tables(w);
	}
	return show_flush() && shown;
}

static bool feed_ready(const struct links_feed *f)
{
	return !f->running || f->answers >= 2;
}

/* Waits for a moment, or on a screen for a key. */
static void rest(struct links *w)
{
	struct pollfd fds[4] = {{.fd = w->nvlink.running ? w->nvlink.process.output : -1, .events = POLLIN},
				{.fd = w->ib.running ? w->ib.process.output : -1, .events = POLLIN}};

	if (!w->terminal.module)
		clock_sleep_ns(clock_monotonic(), STEP_MS * 1000000u);
	else
		w->left = !top_terminal_wait(&w->terminal, fds, 2, 5 * STEP_MS) || !take_keys(w);
}

/* Waits until `until_ns`. With `ready`, waits until each feed has enough answers for a rate. */
static void wait_until(struct links *w, uint64_t until_ns, bool ready)
{
	for (;;) {
		uint64_t now = clock_now_ns(clock_monotonic());

		links_feed_poll(&w->nvlink, now);
		links_feed_poll(&w->ib, now);
		if (*w->c->stop || w->left ||
		    (ready ? feed_ready(&w->nvlink) && feed_ready(&w->ib) : now >= until_ns))
			return;
		rest(w);
	}
}

/* Shows states until the end. The first state waits for two answers of each feed; on a screen, it is shown
 * at once. */
static void watch(struct links *w)
{
	uint64_t step = (uint64_t)(1e9 * w->o->interval), next = clock_now_ns(clock_monotonic());
	uint32_t wanted = !w->again ? 1 : w->o->count ? w->o->count : UINT32_MAX;

	for (uint32_t shown = 0; !*w->c->stop && shown < wanted; shown++) {
		wait_until(w, next, !shown && !w->terminal.module);
		if ((*w->c->stop || w->left) && w->state)
			return;
		take_state(w);
		if (!show_state(w))
			return;
		next = clock_now_ns(clock_monotonic()) + step;
	}
	if (w->terminal.module) /* the last of --count is seen for as long as the others */
		wait_until(w, next, false);
}

/* Prints the last state of several, for whoever looks at the output afterwards. */
static void print_last(struct links *w)
{
	if (w->again && !w->o->json && w->state)
		print_tables(w);
	show_flush();
}

static unsigned parts_of(const char *what)
{
	return !strcmp(what, "nccl")	 ? PART_NCCL
	       : !strcmp(what, "nvlink") ? PART_NVLINK
	       : !strcmp(what, "ib")	 ? PART_IB
					 : PART_ALL;
}

static enum status prepare(struct links *w, struct error *err)
{
	struct machine_scope scope = {.up_to = w->o->machine ? LAYER_NVML : LAYER_HOST, .stop = w->c->stop};
	enum status st = check_options(w->o, w->parts, err);

	if (!st)
		st = machine_read_scope(&w->machine, &scope, w->o->machine, w->c->log, err);
	if (!st)
		st = expectations_load(&w->expectations, NULL, err);
	if (!st && w->parts & PART_NCCL)
		st = read_nccl(w, err);
	if (!st)
		st = start_feeds(w, err);
	return st;
}

static void release(struct links *w)
{
	links_feed_stop(&w->nvlink);
	links_feed_stop(&w->ib);
	expectations_free(w->expectations);
	machine_free(w->machine);
	json_decref(w->nccl);
	json_decref(w->state);
	text_release(&w->lines);
}

static const char *from_environment(void *arg, const char *name)
{
	(void)arg;
	return getenv(name);
}

/* Under a launcher, only the first rank of each node looks, and shows the node's name. False: another
 * rank. */
static bool looks(struct links *w)
{
	const struct environment env = {.get = from_environment};
	const struct team_place_options told = {0};
	struct team_place p = {0};

	if (w->o->machine || team_place(&p, &told, &env, NULL) || p.size < 2)
		return true;
	text_copy(w->node, sizeof(w->node), p.node);
	if (!*w->node && gethostname(w->node, sizeof(w->node) - 1))
		text_copy(w->node, sizeof(w->node), "without a name");
	setvbuf(stdout, NULL, _IOFBF, 1 << 16); /* keeps the lines of one node together */
	return !p.local_rank;
}

static enum status open_screen(struct links *w, struct error *err)
{
	const char *why;

	if (!w->again || w->o->json || !top_terminal_can(&why))
		return STATUS_OK;
	w->view = (struct screen_view){.page = SCREEN_LINES, .theme = top_theme(w->o, true)};
	return top_terminal_open(&w->terminal, err);
}

int top_links(const struct command_context *c, const struct top_opts *o)
{
	struct links w = {.o = o, .c = c, .parts = parts_of(o->what)};
	struct error err = {0};
	int code;

	if (!looks(&w))
		return EXIT_PASS;
	w.again = !o->machine && (!o->once || o->count > 1);
	if (prepare(&w, &err) || open_screen(&w, &err)) {
		log_error(c->log, LOG_TOPIC_MACHINE, "%s%s", err.text,
			  err.status == STATUS_UNAVAILABLE ? "; --once needs no screen" : "");
		code = command_code(err.status);
	} else {
		watch(&w);
		top_terminal_close(&w.terminal);
		print_last(&w);
		code = (*c->stop || w.left) && w.again ? EXIT_PASS
		       : w.state		       ? links_code(w.state)
						       : EXIT_INCONCLUSIVE;
	}
	release(&w);
	return code;
}
