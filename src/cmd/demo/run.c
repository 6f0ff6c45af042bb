/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps, one after the other. A step that fails does not stop the next one. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include "cmd/demo/demo.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "core/text/units.h"

enum { LOOK_NS = 20000000, LIVE_NS = 250000000, LIMIT_TIMES = 4, LIMIT_MORE_S = 600, ANSWER_MS = 200 };
enum answer { ANSWER_RUN, ANSWER_SKIP, ANSWER_END };

/* A step at work. */
struct working {
	struct demo *d;
	size_t at;
	struct stage_child child;
	uint64_t live_ns; /* time of the last look at the progress */
	bool drawn;	  /* a progress line is on the terminal */
	char live[1024];  /* the progress that log.txt has */
};

static double since_s(uint64_t ns)
{
	return (double)(clock_now_ns(clock_monotonic()) - ns) * 1e-9;
}

static void show(const struct text *t)
{
	show_text(t, UTF8_KEEP_COLOUR);
	show_flush();
}

/* One line of log.txt: "0:12 train: step 10/80 loss 2.1". A full disk costs only this file. */
static void log_write(struct demo *d, size_t at, const char *line)
{
	struct text clean = {0};
	char clock[32];

	units_format_clock(clock, sizeof(clock), since_s(d->began_ns));
	utf8_add_clean(&clean, line, UTF8_KEEP_NOTHING);
	if (d->log >= 0 &&
	    dprintf(d->log, "%s %s: %s\n", clock, step_list[d->step[at]].word, text_str(&clean)) < 0 &&
	    !d->log_lost) {
		d->log_lost = true;
		log_warn(d->c->log, LOG_TOPIC_RUN, "log.txt is incomplete: it cannot be written");
	}
	text_release(&clean);
}

static void take_line(void *arg, const char *line)
{
	static const char prefix[] = "assay: ";
	struct working *w = arg;

	log_write(w->d, w->at, strncmp(line, prefix, strlen(prefix)) ? line : line + strlen(prefix));
}

static void clear(struct working *w)
{
	if (w->drawn)
		fputs("\r\033[K", stderr);
	w->drawn = false;
}

static void draw(struct working *w, double elapsed_s)
{
	struct text line = {0}, cut = {0};

	tell_progress(&line, w->d, w->at, elapsed_s, w->child.lines.live);
	utf8_add_clean(&cut, text_str(&line), UTF8_KEEP_NOTHING);
	fprintf(stderr, "\r\033[K%.*s", (int)show_columns() - 1, text_str(&cut));
	fflush(stderr);
	w->drawn = true;
	text_release(&line);
	text_release(&cut);
}

/* Draws the progress, and writes it to log.txt once a second if it has changed. */
static void show_live(struct working *w)
{
	const uint64_t now_ns = clock_now_ns(clock_monotonic());

	if (now_ns - w->live_ns < LIVE_NS)
		return;
	w->live_ns = now_ns;
	if (w->d->c->terminal)
		draw(w, since_s(w->child.began_ns));
	if (*w->child.lines.live && strcmp(w->live, w->child.lines.live)) {
		text_copy(w->live, sizeof(w->live), w->child.lines.live);
		log_write(w->d, w->at, w->live);
	}
}

static double limit_s(const struct stage_result *r)
{
	return LIMIT_TIMES * r->expected_s + LIMIT_MORE_S;
}

static void follow(struct working *w, const struct stage_result *r)
{
	while (!stage_child_poll(&w->child)) {
		show_live(w);
		if (stage_child_over(&w->child, limit_s(r), w->d->c->stop)) {
			stage_child_force(&w->child);
			break;
		}
		clock_sleep_ns(clock_monotonic(), LOOK_NS);
	}
	clear(w);
}

static void conclude(const struct working *w, struct stage_result *r, const char *dir, int code,
		     const char *how)
{
	step_list[w->d->step[w->at]].judge(w->d, r, dir, code);
	if (w->child.late)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "it took longer than %.0f s and was ended",
			  limit_s(r));
	else if (w->child.asked_ns)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "stopped before its end");
	else if (code < 0)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "the command was ended by %s", how);
}

static void work(struct demo *d, size_t at)
{
	struct working w = {.d = d, .at = at};
	const struct stage_watch watch = {.line = take_line, .arg = &w};
	struct stage_result *r = &d->result[d->step[at]];
	struct error err = {0};
	char dir[PATH_MAX + 64], how[128] = "";
	int code;

	tour_step_dir(d, d->step[at], dir);
	if (file_make_dir(dir, &err) || stage_child_start(&w.child, &r->command, dir, &watch, &err)) {
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "%.380s", err.text);
		return;
	}
	follow(&w, r);
	r->seconds = since_s(w.child.began_ns);
	code = stage_child_release(&w.child, how, sizeof(how));
	conclude(&w, r, dir, code, how);
}

/* -- a speaker -- */

/* Reads one line from stdin and keeps its first letter. False: nobody answers, or a stop was requested. */
static bool read_answer(const struct demo *d, char *first)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	bool begun = false;

	*first = '\0';
	while (!*d->c->stop) {
		char c;

		if (poll(&in, 1, ANSWER_MS) <= 0)
			continue;
		if (read(STDIN_FILENO, &c, 1) != 1)
			return false;
		if (c == '\n')
			return true;
		if (!begun)
			*first = c;
		begun = true;
	}
	return false;
}

static enum answer wait_for_speaker(struct demo *d)
{
	struct text prompt = {0};
	char first;

	if (!d->o->pause || d->unpaused)
		return ANSWER_RUN;
	text_add(&prompt, "  Enter runs it, s skips it, q ends the tour: ");
	show(&prompt);
	text_release(&prompt);
	if (!read_answer(d, &first)) {
		text_add(&prompt, "\n");
		show(&prompt);
		text_release(&prompt);
		d->unpaused = true;
		if (!*d->c->stop)
			log_warn(
				d->c->log, LOG_TOPIC_RUN,
				"--pause: the standard input has ended, so the tour continues without pauses");
		return ANSWER_RUN;
	}
	return first == 's' ? ANSWER_SKIP : first == 'q' ? ANSWER_END : ANSWER_RUN;
}

/* -- a step -- */

/* The first step that this one needs and that left nothing; STEP_COUNT: none. */
static enum step_id missing(const struct demo *d, enum step_id id)
{
	unsigned needs = step_list[id].needs;

	if (d->o->model)
		needs &= ~STEP_BIT(WEIGHTS);
	for (size_t i = 0; i < d->count; i++)
		if (d->result[d->step[i]].command.count)
			needs &= ~(1u << d->step[i]);
	return tour_first(d, needs);
}

static void ask_and_work(struct demo *d, size_t at)
{
	struct stage_result *r = &d->result[d->step[at]];

	switch (wait_for_speaker(d)) {
	case ANSWER_RUN:
		if (!*d->c->stop) {
			work(d, at);
			return;
		}
		stage_say(r, VERDICT_STAGE_NOT_RUN, "stopped before it began");
		break;
	case ANSWER_SKIP:
		stage_say(r, VERDICT_STAGE_SKIPPED, "the speaker skipped it");
		break;
	case ANSWER_END:
		d->ended = true;
		stage_say(r, VERDICT_STAGE_NOT_RUN, "the speaker ended the tour");
		break;
	}
	r->command = (struct stage_command){0}; /* it left nothing for others */
}

static void run_step(struct demo *d, size_t at)
{
	const enum step_id id = d->step[at], lacks = missing(d, id);
	const struct demo_step *step = &step_list[id];
	struct stage_result *r = &d->result[id];
	const char *why = step->skips ? step->skips(d) : NULL;
	struct text out = {0};

	if (why)
		stage_say(r, VERDICT_STAGE_SKIPPED, "%s", why);
	else if (lacks != STEP_COUNT)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "it needs step %s, which did not run",
			  step_list[lacks].word);
	else
		step->command(d, &r->command);
	tell_step(&out, d, at);
	show(&out);
	text_release(&out);
	if (r->command.count)
		ask_and_work(d, at);
	tell_end(&out, d, at);
	show(&out);
	text_release(&out);
}

static void open_log(struct demo *d)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/log.txt", d->dir);
	d->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (d->log < 0)
		log_warn(d->c->log, LOG_TOPIC_RUN, "cannot write %s", path);
}

static void prepare(struct demo *d)
{
	struct error err = {0};
	struct text out = {0};

	d->began_ns = clock_now_ns(clock_monotonic());
	open_log(d);
	if (tour_write_rows(d, &err))
		log_warn(d->c->log, LOG_TOPIC_RUN, "%s", err.text); /* the step that needs it fails */
	tell_banner(&out, d);
	show(&out);
	text_release(&out);
}

void demo_run(struct demo *d)
{
	struct text out = {0};

	prepare(d);
	for (size_t i = 0; i < d->count; i++) {
		struct stage_result *r = &d->result[d->step[i]];

		if (!r->asked)
			continue;
		if (*d->c->stop)
			stage_say(r, VERDICT_STAGE_NOT_RUN, "stopped before it began");
		else if (d->ended)
			stage_say(r, VERDICT_STAGE_NOT_RUN, "the speaker ended the tour");
		else
			run_step(d, i);
	}
	if (!d->o->model && !d->o->keep_model)
		file_remove_tree(d->weights);
	d->seconds = since_s(d->began_ns);
	if (d->log >= 0)
		close(d->log);
	tell_summary(&out, d);
	show(&out);
	text_release(&out);
}

int demo_code(const struct demo *d)
{
	bool failed = false, open = *d->c->stop != 0;

	for (size_t i = 0; i < d->count; i++) {
		const struct stage_result *r = &d->result[d->step[i]];

		failed = failed || r->verdict == VERDICT_STAGE_FAILED;
		open = open || (r->asked && (r->verdict == VERDICT_STAGE_INCONCLUSIVE ||
					     r->verdict == VERDICT_STAGE_NOT_RUN));
	}
	return failed ? EXIT_FAILED : open ? EXIT_INCONCLUSIVE : EXIT_PASS;
}
