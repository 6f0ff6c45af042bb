/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the stages, one after the other. A stage that fails does not stop the next one. */
#include <sys/stat.h>
#include "cmd/comprehensive/comprehensive.h"
#include "core/clock.h"
#include "core/file/file.h"

enum { LOOK_NS = 20000000, LIVE_NS = 1000000000, LIMIT_TIMES = 4, LIMIT_MORE_S = 600 };
enum { SHORT_MS = 5000 };

/* A stage at work: its own command, and those that run beside it. */
struct working {
	struct comprehensive *s;
	enum stage_id id;
	struct stage_child own, beside[STAGE_COUNT];
	uint64_t began_ns, live_ns;
};

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

static double since_s(uint64_t ns)
{
	return (double)(now_ns() - ns) * 1e-9;
}

static enum status make_dir(const struct comprehensive *s, enum stage_id id, char dir[PATH_MAX + 32],
			    struct error *err)
{
	char path[PATH_MAX + 64];
	enum status st;

	stage_dir(s, id, dir);
	st = file_make_dir(dir, err);
	if (st || id != STAGE_ACCURACY || s->o->data)
		return st;
	snprintf(path, sizeof(path), "%s/text.txt", dir);
	return file_write(path, comprehensive_text, strlen(comprehensive_text), err);
}

static enum status start(struct comprehensive *s, enum stage_id id, struct stage_child *child,
			 struct error *err)
{
	struct stage_result *r = &s->result[id];
	char dir[PATH_MAX + 32];
	enum status st = make_dir(s, id, dir, err);

	stage_list[id].command(s, &r->command);
	return st ? st : stage_child_start(child, &r->command, dir, NULL, err);
}

static void start_beside(struct working *w)
{
	for (int i = 0; i < STAGE_COUNT; i++) {
		struct stage_result *r = &w->s->result[i];
		struct error err = {0};

		if (!(stage_list[w->id].beside & 1u << i) || !r->asked ||
		    (stage_list[i].skip && stage_list[i].skip(w->s)))
			continue;
		if (start(w->s, (enum stage_id)i, &w->beside[i], &err))
			stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "%.380s", err.text);
	}
}

/* Ends the commands that ran beside the stage; their results are judged in their own turn. */
static void end_beside(struct working *w)
{
	char how[128];

	for (int i = 0; i < STAGE_COUNT; i++) {
		if (!w->beside[i].running)
			continue;
		stage_child_stop(&w->beside[i], SHORT_MS);
		stage_child_release(&w->beside[i], how, sizeof(how));
		w->s->result[i].seconds = since_s(w->began_ns);
	}
}

static void show_live(struct working *w)
{
	if (!w->s->c->terminal || now_ns() - w->live_ns < LIVE_NS)
		return;
	w->live_ns = now_ns();
	fprintf(stderr, "\r\033[Kstage %d of %d, %s: %.0f s of about %.0f s", (int)w->id + 1, STAGE_COUNT,
		stage_list[w->id].word, since_s(w->began_ns), w->s->result[w->id].expected_s);
}

static double limit_s(const struct working *w)
{
	return LIMIT_TIMES * w->s->result[w->id].expected_s + LIMIT_MORE_S;
}

static void follow(struct working *w)
{
	while (!stage_child_poll(&w->own)) {
		for (int i = 0; i < STAGE_COUNT; i++)
			if (w->beside[i].running)
				stage_child_poll(&w->beside[i]);
		show_live(w);
		if (stage_child_over(&w->own, limit_s(w), w->s->c->stop)) {
			stage_child_force(&w->own);
			break;
		}
		clock_sleep_ns(clock_monotonic(), LOOK_NS);
	}
	if (w->live_ns)
		fputs("\r\033[K", stderr);
}

static void conclude(struct working *w, int code, const char *how)
{
	const struct stage *stage = &stage_list[w->id];
	struct stage_result *r = &w->s->result[w->id];

	stage->judge(w->s, r, code);
	if (w->own.late)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "it took longer than %.0f s and was ended",
			  limit_s(w));
	else if (w->own.asked_ns)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "stopped before its end");
	else if (code < 0)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "the command was ended by %s", how);
}

static void work(struct comprehensive *s, enum stage_id id)
{
	struct working w = {.s = s, .id = id, .began_ns = now_ns()};
	struct stage_result *r = &s->result[id];
	struct error err = {0};
	char how[128] = "";
	int code;

	start_beside(&w);
	if (start(s, id, &w.own, &err)) {
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "%.380s", err.text);
	} else {
		follow(&w);
		code = stage_child_release(&w.own, how, sizeof(how));
		conclude(&w, code, how);
	}
	end_beside(&w);
	r->seconds = since_s(w.began_ns);
}

/* The first stage that this one needs and that left nothing. */
static int missing(const struct comprehensive *s, enum stage_id id)
{
	for (int i = 0; i < STAGE_COUNT; i++)
		if (stage_list[id].needs & 1u << i && !s->result[i].command.count)
			return i;
	return -1;
}

static void run_stage(struct comprehensive *s, enum stage_id id)
{
	const struct stage *stage = &stage_list[id];
	struct stage_result *r = &s->result[id];
	const char *why = stage->skip ? stage->skip(s) : NULL;
	const int lacks = missing(s, id);

	if (why)
		stage_say(r, VERDICT_STAGE_SKIPPED, "%s", why);
	else if (stage->model && *s->model_why)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "no model: %.380s", s->model_why);
	else if (lacks >= 0)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "it needs stage %d, %s, which did not run",
			  lacks + 1, stage_list[lacks].word);
	else if (r->command.count)
		stage->judge(s, r, EXIT_PASS); /* it ran beside another stage */
	else
		work(s, id);
}

static bool model_asked(const struct comprehensive *s)
{
	for (int i = 0; i < STAGE_COUNT; i++)
		if (s->result[i].asked && stage_list[i].model)
			return true;
	return false;
}

static void follow_model(struct comprehensive *s, struct stage_child *child)
{
	char how[128];

	while (!stage_child_poll(child) && !*s->c->stop)
		clock_sleep_ns(clock_monotonic(), LOOK_NS);
	stage_child_stop(child, SHORT_MS);
	if (stage_child_release(child, how, sizeof(how)))
		snprintf(s->model_why, sizeof(s->model_why),
			 "assay make-model ended with %s; stage-0-model/messages.txt says why", how);
}

static void make_model(struct comprehensive *s)
{
	struct stage_command k = {0};
	struct stage_child child;
	struct error err = {0};
	char dir[PATH_MAX + 32];

	snprintf(dir, sizeof(dir), "%s/stage-0-model", s->dir);
	log_info(s->c->log, LOG_TOPIC_RUN, "making a model of shape %s with random weights", s->size.shape);
	stage_command_add(&k, "make-model");
	stage_command_add(&k, "--shape");
	stage_command_add(&k, "%s", s->size.shape);
	stage_command_add(&k, "--out");
	stage_command_add(&k, "%s", s->model);
	if (file_make_dir(dir, &err) || stage_child_start(&child, &k, dir, NULL, &err))
		text_copy(s->model_why, sizeof(s->model_why), err.text);
	else
		follow_model(s, &child);
}

static void show_end(const struct comprehensive *s, enum stage_id id)
{
	const struct stage_result *r = &s->result[id];
	const char *more = r->verdict == VERDICT_STAGE_PASSED && *r->headline ? r->headline : r->reason;

	log_info(s->c->log, LOG_TOPIC_RUN, "stage %d of %d, %s: %s%s%s", (int)id + 1, STAGE_COUNT,
		 stage_list[id].word, stage_verdict_word(r->verdict), *more ? ": " : "", more);
}

void comprehensive_run(struct comprehensive *s)
{
	const uint64_t began_ns = now_ns();

	if (s->own_model && model_asked(s))
		make_model(s);
	for (int i = 0; i < STAGE_COUNT; i++) {
		if (!s->result[i].asked)
			continue;
		if (*s->c->stop) {
			stage_say(&s->result[i], VERDICT_STAGE_NOT_RUN, "stopped before it began");
			continue;
		}
		if (stage_list[i].expected_s && !(stage_list[i].skip && stage_list[i].skip(s)))
			log_info(s->c->log, LOG_TOPIC_RUN, "stage %d of %d, %s: %s; about %.0f s", i + 1,
				 STAGE_COUNT, stage_list[i].word, stage_list[i].says,
				 s->result[i].expected_s);
		run_stage(s, (enum stage_id)i);
		show_end(s, (enum stage_id)i);
	}
	if (s->own_model && !s->o->keep_model)
		file_remove_tree(s->model);
	s->seconds = since_s(began_ns);
}

int comprehensive_code(const struct comprehensive *s)
{
	bool failed = false, open = *s->c->stop != 0;

	for (int i = 0; i < STAGE_COUNT; i++) {
		const struct stage_result *r = &s->result[i];

		failed = failed || r->verdict == VERDICT_STAGE_FAILED;
		open = open ||
		       (r->asked && stage_list[i].core &&
			(r->verdict == VERDICT_STAGE_INCONCLUSIVE || r->verdict == VERDICT_STAGE_NOT_RUN));
	}
	return failed ? EXIT_FAILED : open ? EXIT_INCONCLUSIVE : EXIT_PASS;
}
