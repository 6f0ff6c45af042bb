/* SPDX-License-Identifier: Apache-2.0 */
/* The tour in four panes of tmux. The session has a server of its own, so it touches no other session. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "cmd/demo/demo.h"
#include "core/process/process.h"

enum { LIMIT_MS = 10000, ANSWER_MOST = 1 << 20, WORDS = 64 };
/* The server has this socket name; -f: no configuration of the user changes its panes. */
#define TMUX "tmux", "-L", "assay-demo", "-f", "/dev/null"
static const char session[] = "demo";

/* Runs a program and drops its output; `errors`: a descriptor for its stderr, NULL: ours. Its exit code; -1:
 * it cannot be run. */
static int run_silent(const struct command_context *c, const char *const *argv, const int *errors,
		      struct error *err)
{
	const struct process_spec spec = {.argv = argv, .errors = errors, .cpu_numa = -1, .stop = c->stop};
	char *text = NULL;
	size_t size = 0;
	int code = -1;

	if (process_run(&spec, LIMIT_MS, ANSWER_MOST, &text, &size, &code, err))
		code = -1;
	free(text);
	return code;
}

/* Asks a question whose answer is the exit code. */
static bool is_true(const struct command_context *c, const char *const *argv)
{
	const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct error err = {0};
	bool yes = run_silent(c, argv, nowhere >= 0 ? &nowhere : NULL, &err) == 0;

	if (nowhere >= 0)
		close(nowhere);
	return yes;
}

bool tmux_there(const struct command_context *c)
{
	return is_true(c, (const char *const[]){"tmux", "-V", NULL});
}

static bool is_running(const struct command_context *c)
{
	return is_true(c, (const char *const[]){TMUX, "has-session", "-t", session, NULL});
}

bool tmux_free(const struct command_context *c)
{
	if (is_running(c))
		log_error(c->log, LOG_TOPIC_RUN,
			  "a demo is running: assay demo attach shows it, assay demo kill ends it");
	return !is_running(c);
}

/* -- the panes -- */

struct words {
	const char *word[WORDS];
	size_t count;
};

static void add(struct words *w, const char *word)
{
	if (w->count + 1 < WORDS)
		w->word[w->count++] = word;
}

static void add_all(struct words *w, const char *const *words)
{
	for (; *words; words++)
		add(w, *words);
}

static void add_option(struct words *w, const char *name, const char *value)
{
	if (value)
		add_all(w, (const char *const[]){name, value, NULL});
}

/* The tour itself, with the same options. The texts of numbers live in `text`. */
static void add_run(struct words *w, const struct demo *d, const char *program, char text[3][32])
{
	const struct demo_opts *o = d->o;

	add_all(w, (const char *const[]){program, "demo", tour_words[d->tour], "--out", d->dir, NULL});
	add_option(w, "--steps", o->steps);
	add_option(w, "--model", o->model);
	snprintf(text[0], sizeof(text[0]), "%u", o->train_steps);
	add_option(w, "--train-steps", text[0]);
	snprintf(text[1], sizeof(text[1]), "%g", o->duration);
	add_option(w, "--duration", text[1]);
	snprintf(text[2], sizeof(text[2]), "%g", o->price_per_hour);
	add_option(w, "--price-per-hour", text[2]);
	if (o->pause)
		add(w, "--pause");
	if (o->keep_model)
		add(w, "--keep-model");
}

/* The links if there are any, else the loss of the trainings. */
static void add_links_or_loss(struct words *w, const struct demo *d, const char *program, const char *log)
{
	if (d->size.nvlink)
		add_all(w, (const char *const[]){program, "top", "nvlink", "--interval", "2s", NULL});
	else
		add_all(w,
			(const char *const[]){
				"sh", "-c",
				"echo 'loss of the trainings'; tail -n +1 -F \"$0\" 2> /dev/null | grep --line-buffered ' loss '",
				log, NULL});
}

static const char *title_of(const struct demo *d, unsigned pane)
{
	const char *const titles[] = {"machine", "tour", "messages", d->size.nvlink ? "links" : "loss"};

	return titles[pane];
}

/* Fills one tmux command: the first makes the session, the others split it. */
static void fill_pane(struct words *w, const struct demo *d, unsigned pane, const char *program,
		      const char *log, char text[3][32])
{
	static const char *const first[] = {"new-session", "-d", "-s", session, "-x",
					    "180",	   "-y", "50", NULL},
				 *const split[] = {"split-window", "-t", session, NULL};

	add_all(w, (const char *const[]){TMUX, NULL});
	add_all(w, pane ? split : first);
	if (pane == 0)
		add_all(w, (const char *const[]){program, "top", NULL});
	else if (pane == 1)
		add_run(w, d, program, text);
	else if (pane == 2)
		add_all(w, (const char *const[]){"tail", "-n", "+1", "-F", log, NULL});
	else
		add_links_or_loss(w, d, program, log);
	w->word[w->count] = NULL;
}

static enum status tell_tmux(const struct command_context *c, const char *const *words, struct error *err)
{
	struct words w = {0};
	int code;

	add_all(&w, (const char *const[]){TMUX, NULL});
	add_all(&w, words);
	w.word[w.count] = NULL;
	code = run_silent(c, w.word, NULL, err);
	if (code > 0)
		return error_set(err, STATUS_NO_RESOURCE, "tmux %s ended with exit code %d", words[0], code);
	return code ? err->status : STATUS_OK;
}

static enum status make_pane(const struct demo *d, unsigned pane, const char *program, const char *log,
			     struct error *err)
{
	char text[3][32], target[32];
	struct words w = {0};
	int code;
	enum status st;

	fill_pane(&w, d, pane, program, log, text);
	code = run_silent(d->c, w.word, NULL, err);
	if (code)
		return code > 0 ? error_set(err, STATUS_NO_RESOURCE,
					    "tmux could not make pane %u, exit code %d", pane, code)
				: err->status;
	snprintf(target, sizeof(target), "%s:0.%u", session, pane);
	/* a tour that has ended stays on the screen */
	st = tell_tmux(d->c, (const char *const[]){"set-option", "-g", "remain-on-exit", "on", NULL}, err);
	if (!st)
		st = tell_tmux(d->c, (const char *const[]){"select-layout", "-t", session, "tiled", NULL},
			       err);
	return st ? st
		  : tell_tmux(
			    d->c,
			    (const char *const[]){"select-pane", "-t", target, "-T", title_of(d, pane), NULL},
			    err);
}

static enum status make_session(const struct demo *d, struct error *err)
{
	char program[PATH_MAX], log[PATH_MAX + 32];
	const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	enum status st = STATUS_OK;

	if (size <= 0)
		return error_set(err, STATUS_UNAVAILABLE, "the path of this program cannot be read");
	program[size] = '\0';
	snprintf(log, sizeof(log), "%s/log.txt", d->dir);
	for (unsigned pane = 0; !st && pane < 4; pane++)
		st = make_pane(d, pane, program, log, err);
	if (!st)
		st = tell_tmux(d->c,
			       (const char *const[]){"set-option", "-g", "pane-border-status", "top", NULL},
			       err);
	if (!st)
		st = tell_tmux(d->c, (const char *const[]){"set-option", "-g", "mouse", "on", NULL}, err);
	return st ? st : tell_tmux(d->c, (const char *const[]){"select-pane", "-t", "demo:0.1", NULL}, err);
}

/* -- the three words -- */

static int complain(const struct command_context *c, const char *what)
{
	log_error(c->log, LOG_TOPIC_RUN, "%s", what);
	return EXIT_INCONCLUSIVE;
}

static int attach(const struct command_context *c)
{
	unsetenv("TMUX"); /* inside of tmux: our session is another server's */
	execlp("tmux", TMUX, "attach-session", "-t", session, (char *)NULL);
	return complain(c, "tmux cannot be run");
}

static bool can_attach(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

int tmux_start(const struct demo *d)
{
	struct error err = {0};

	if (make_session(d, &err)) {
		tmux_kill(d->c);
		return complain(d->c, err.text);
	}
	log_info(d->c->log, LOG_TOPIC_RUN, "the demo runs in tmux; results: %s", d->dir);
	if (!d->o->detach && can_attach())
		return attach(d->c);
	log_info(d->c->log, LOG_TOPIC_RUN, "assay demo attach shows it, assay demo kill ends it");
	return EXIT_PASS;
}

int tmux_attach(const struct command_context *c)
{
	if (!tmux_there(c))
		return complain(c, "tmux is not installed, so there is no demo to attach to");
	if (!is_running(c))
		return complain(c, "no demo runs in tmux: assay demo start quick begins one");
	return can_attach() ? attach(c) : complain(c, "attach needs a terminal");
}

int tmux_kill(const struct command_context *c)
{
	struct error err = {0};

	if (!tmux_there(c))
		return complain(c, "tmux is not installed, so there is no demo to end");
	if (!is_running(c))
		return complain(c, "no demo runs in tmux");
	if (tell_tmux(c, (const char *const[]){"kill-server", NULL}, &err))
		return complain(c, err.text);
	log_info(c->log, LOG_TOPIC_RUN, "the demo has ended; its folder stays readable");
	return EXIT_PASS;
}
