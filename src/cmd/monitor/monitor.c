/* SPDX-License-Identifier: Apache-2.0 */
/* assay monitor: shows the NCCL settings, and the state and traffic of NVLinks and InfiniBand or RoCE
 * ports. */
#include "cmd/monitor/monitor.h"
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "cmd/command.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "machine/nccl/settings.h"
#include "team/launcher/place.h"

enum { PART_NCCL = 1, PART_NVLINK = 2, PART_IB = 4, PART_ALL = 7 };
enum { STEP_MS = 20, ROWS_PRESET = 24 };

struct monitor_opts {
	const char *what, *machine;
	double interval;
	uint64_t pid;
	uint32_t count;
	bool json;
};

static const char *const words[] = {"nccl", "nvlink", "ib", "all", "live", NULL};

static const struct opt opts[] = {
	OPT_ROW(struct monitor_opts, what, .name = "what", .positional = true, .preset = "all",
		.shown = "PART", .choices = words, .help = "the part to show; live: all parts, repeatedly"),
	OPT_ROW(struct monitor_opts, interval, .name = "interval", .also = "delay loop d", .preset = "1s",
		.unit = "s", .min = 0.05, .max = 3600,
		.help = "time between two readings, over which rates are computed"),
	OPT_ROW(struct monitor_opts, count, .name = "count", .also = "samples iterations n", .min = 1,
		.max = 1e9, .shown = "N",
		.help = "show the state N times, then end (default 1; live: until stopped)"),
	OPT_ROW(struct monitor_opts, pid, .name = "pid", .also = "process p", .min = 1, .max = 4194304,
		.shown = "PID",
		.help = "show the NCCL variables of this process instead of assay's own environment"),
	OPT_ROW(struct monitor_opts, json, .name = "json", .help = "print one JSON object per line"),
	OPT_ROW(struct monitor_opts, machine, .name = "machine", .shown = "DIR",
		.help = "show the settings and states of a recorded machine; no rates"),
};

struct monitor {
	const struct monitor_opts *o;
	const struct command_context *c;
	unsigned parts;
	bool again;  /* shows more than one state */
	bool screen; /* redraws on a terminal */
	struct machine *machine;
	struct expectations *expectations;
	struct monitor_feed nvlink, ib;
	char node[128]; /* name of the node if launched as ranks; "": alone */
	json_t *nccl;	/* read once at the beginning: a process's environment does not change later */
	json_t *state;	/* the last state shown */
};

static enum status check_options(const struct monitor_opts *o, unsigned parts, struct error *err)
{
	if (o->machine && !strcmp(o->what, "live"))
		return error_set(err, STATUS_BAD_INPUT,
				 "live and --machine cannot be combined: a recording does not change");
	if (o->machine && o->count > 1)
		return error_set(err, STATUS_BAD_INPUT,
				 "--count and --machine cannot be combined: a recording does not change");
	if (o->machine && o->pid)
		return error_set(err, STATUS_BAD_INPUT,
				 "--pid and --machine cannot be combined: a recording has no processes");
	if (o->pid && !(parts & PART_NCCL))
		return error_set(err, STATUS_BAD_INPUT,
				 "--pid works only with nccl, all and live, not with %s", o->what);
	return STATUS_OK;
}

static enum status read_nccl(struct monitor *w, struct error *err)
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
		w->nccl = monitor_nccl(environment, files, facts, w->expectations);
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

static enum status start_feeds(struct monitor *w, struct error *err)
{
	enum status st = STATUS_OK;

	if (w->o->machine)
		return st;
	if (w->parts & PART_NVLINK)
		st = monitor_feed_start(&w->nvlink, "nvlink", w->o->interval, NULL, err);
	if (!st && w->parts & PART_IB)
		st = monitor_feed_start(&w->ib, "ib", w->o->interval, sys_folder(), err);
	return st;
}

/* The previous answer. None if the helper has ended, because its rates would be outdated. */
static const json_t *earlier(const struct monitor_feed *f)
{
	return f->running ? f->before : NULL;
}

/* Adds the feed's own error or waiting message to its part. */
static json_t *with_why(json_t *part, const struct monitor_feed *f)
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

static json_t *nvlink_part(struct monitor *w)
{
	json_t *recorded, *part;

	if (!w->o->machine)
		return with_why(monitor_nvlink(earlier(&w->nvlink), w->nvlink.now, w->machine), &w->nvlink);
	recorded = monitor_recorded_nvlink(w->machine);
	part = monitor_nvlink(NULL, recorded, w->machine);
	json_decref(recorded);
	return part;
}

static json_t *ib_part(struct monitor *w)
{
	json_t *recorded, *part;

	if (!w->o->machine)
		return with_why(monitor_ib(earlier(&w->ib), w->ib.now), &w->ib);
	recorded = monitor_recorded_ib(w->machine);
	part = monitor_ib(NULL, recorded);
	json_decref(recorded);
	return part;
}

static void take_state(struct monitor *w)
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

static void print_tables(const struct monitor *w)
{
	struct text t = {0};

	if (*w->node)
		text_addf(&t, "node %s\n\n", w->node);
	monitor_text(&t, w->state, w->parts == PART_NVLINK);
	show_text(&t, UTF8_KEEP_NOTHING);
	text_release(&t);
}

/* Draws a frame from the upper left corner, cut to the current size of the terminal. */
static void draw(const struct monitor *w)
{
	struct text all = {0}, clean = {0}, frame = {0};
	struct winsize size = {0};

	text_addf(&all, "assay monitor  %s  every %.3g s  Ctrl-C ends\n",
		  json_string_value(json_object_get(w->state, "t")), w->o->interval);
	monitor_text(&all, w->state, w->parts == PART_NVLINK);
	utf8_add_clean(&clean, text_str(&all), UTF8_KEEP_LINES);
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	monitor_cut(&frame, text_str(&clean), show_columns(),
		    size.ws_row > 2 ? size.ws_row - 1u : ROWS_PRESET);
	fputs("\033[H\033[J", stdout);
	fputs(text_str(&frame), stdout);
	text_release(&all);
	text_release(&clean);
	text_release(&frame);
}

/* False if nobody reads the output any more. */
static bool show_state(const struct monitor *w)
{
	struct text line = {0};
	bool shown = true;

	if (w->o->json) {
		shown = show_json(w->state, JSON_COMPACT | JSON_REAL_PRECISION(12));
	} else if (w->screen) {
		draw(w);
	} else if (w->again) {
		monitor_line(&line, w->state);
		show_text(&line, UTF8_KEEP_NOTHING);
		text_release(&line);
	} else {
		print_tables(w);
	}
	return show_flush() && shown;
}

static bool feed_ready(const struct monitor_feed *f)
{
	return !f->running || f->answers >= 2;
}

/* Waits until `until_ns`. With `ready`, waits until each feed has enough answers for a rate. */
static void wait_until(struct monitor *w, uint64_t until_ns, bool ready)
{
	const struct clock *clock = clock_monotonic();

	for (;;) {
		uint64_t now = clock_now_ns(clock);

		monitor_feed_poll(&w->nvlink, now);
		monitor_feed_poll(&w->ib, now);
		if (*w->c->stop || (ready ? feed_ready(&w->nvlink) && feed_ready(&w->ib) : now >= until_ns))
			return;
		clock_sleep_ns(clock, STEP_MS * 1000000u);
	}
}

/* Shows states until the end. The first state waits for two answers of each feed; on a screen, it is shown
 * at once. */
static void watch(struct monitor *w)
{
	uint64_t step = (uint64_t)(1e9 * w->o->interval), next = clock_now_ns(clock_monotonic());
	uint32_t wanted = w->o->count ? w->o->count : strcmp(w->o->what, "live") ? 1 : UINT32_MAX;

	for (uint32_t shown = 0; !*w->c->stop && shown < wanted; shown++) {
		wait_until(w, next, !shown && !w->screen);
		if (*w->c->stop && w->state)
			return;
		take_state(w);
		if (!show_state(w))
			return;
		next = clock_now_ns(clock_monotonic()) + step;
	}
}

static void begin_screen(const struct monitor *w)
{
	if (w->screen)
		fputs("\033[?1049h\033[?25l", stdout); /* alternate screen, no cursor */
}

/* Restores the previous screen and prints the last state below it. */
static void end_screen(const struct monitor *w)
{
	if (w->screen)
		fputs("\033[?25h\033[?1049l", stdout);
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

static enum status prepare(struct monitor *w, struct error *err)
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

static void release(struct monitor *w)
{
	monitor_feed_stop(&w->nvlink);
	monitor_feed_stop(&w->ib);
	expectations_free(w->expectations);
	machine_free(w->machine);
	json_decref(w->nccl);
	json_decref(w->state);
}

static const char *from_environment(void *arg, const char *name)
{
	(void)arg;
	return getenv(name);
}

/* Under a launcher, only the first rank of each node monitors, and shows the node's name. False: another
 * rank. */
static bool looks(struct monitor *w)
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

static int run(const struct command_context *c, const void *opts_)
{
	const struct monitor_opts *o = opts_;
	struct monitor w = {.o = o, .c = c, .parts = parts_of(o->what)};
	struct error err = {0};
	int code;

	if (!looks(&w))
		return EXIT_PASS;
	w.again = !strcmp(o->what, "live") || o->count > 1;
	w.screen = w.again && !o->json && isatty(STDOUT_FILENO);
	if (prepare(&w, &err)) {
		log_error(c->log, LOG_TOPIC_MACHINE, "%s", err.text);
		code = err.status == STATUS_BAD_INPUT ? EXIT_USAGE : EXIT_INCONCLUSIVE;
	} else {
		begin_screen(&w);
		watch(&w);
		end_screen(&w);
		code = *c->stop && w.again ? EXIT_PASS : w.state ? monitor_code(w.state) : EXIT_INCONCLUSIVE;
	}
	release(&w);
	return code;
}

const struct command command_monitor = {
	.name = "monitor",
	.summary = "show NCCL settings, NVLinks and InfiniBand or RoCE ports, once or live",
	.example =
		"assay monitor nvlink --interval 2s   # state, errors and rates of each link over two seconds",
	.help = "nccl: every NCCL variable that is set in the environment, in NCCL_CONF_FILE or ~/.nccl.conf, or in "
		"/etc/nccl.conf, with its meaning and a verdict: ok, hurts, unknown. --pid reads the variables of "
		"another process of yours.\n"
		"nvlink: each link's state, remote device, errors, and payload and raw rates over the interval.\n"
		"ib: InfiniBand and RoCE ports.\n"
		"live: all parts, redrawn; if the output is not a terminal, one line per reading.\n\n"
		"With assay launch -- monitor all, each node is shown once. Helper processes read the driver: if a "
		"driver hangs, assay reports it and keeps working.\n\n"
		"Exit codes: 0 nothing is wrong, 1 a link is down or a setting disables hardware that is present, 2 "
		"something could not be read. Ctrl-C while it repeats: 0.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct monitor_opts)},
	.run = run,
};
