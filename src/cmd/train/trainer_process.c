/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, reads and ends the worker of a training run, and forwards its lines. */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include "cmd/info/info.h"
#include "cmd/shared/show.h"
#include "cmd/train/train.h"
#include "team/links/flight.h"
#include "train/run/fields.h"
#include "train/run/inputs.h"

enum { WAIT_MS = 200, LEAVE_MS = 5000, KILL_MS = 2000, READINGS = 64, TIMES = 20, PEERS = 64 };
static const uint64_t LISTEN_NS = 20000000000u;
static const double silence_s = 600;

/* Adds every number of a line to the journal, except its time. */
static void tell_numbers(struct training *t, const json_t *line)
{
	struct job_reading readings[READINGS];
	const char *name;
	const json_t *value;
	size_t count = 0;

	json_object_foreach((json_t *)line, name, value) if (json_is_number(value) && count < READINGS)
		readings[count++] = (struct job_reading){name, json_number_value(value)};
	job_report(t->job, "train", clock_now_ns(clock_monotonic()), readings, count);
}

/* The device and libraries that the worker reported when it was ready, at the end of that phase. */
static json_t *worked_by(const struct training *t)
{
	static const char *const names[] = {
#define X(name, help) #name,
		TRAIN_TEXTS(X)
#undef X
	};
	json_t *values = json_object();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		json_object_set(values, names[i], json_object_get(t->ready, names[i]));
	return values;
}

static void end_phase(struct training *t)
{
	const bool load = !strcmp(t->phase, "load");

	if (*t->phase)
		job_phase(t->job, t->phase, t->phase_ns, clock_now_ns(clock_monotonic()),
			  load && t->ready ? worked_by(t) : NULL);
	*t->phase = '\0';
}

static void hear(struct training *t)
{
	t->silent_max_s = t->silent_s > t->silent_max_s ? t->silent_s : t->silent_max_s;
	t->silent_s = 0;
}

/* All ranks read the same files, so their workers say the same. */
static void take_log(const struct training *t, const json_t *line)
{
	if (train_ranks_leads(t) || json_integer_value(json_object_get(line, "level")) >= LOG_ERROR)
		child_log_take(t->c->log, line);
}

/* After a failure the worker of one of several ranks may still be inside a collective, so it does not end by
 * itself. */
static void end_with_others(struct training *t)
{
	if (train_ranks_several(t) && t->end.status && t->end.status != STATUS_CANCELLED)
		process_stop(&t->worker, 0, KILL_MS);
}

static bool take_line(void *arg, const char *text, size_t size)
{
	struct training *t = arg;
	json_t *line = json_loadb(text, size, 0, NULL);
	const char *type = json_string_value(json_object_get(line, "type"));

	if (!type) {
		t->garbled = true;
		json_decref(line);
		return false;
	}
	hear(t);
	if (!strcmp(type, "alive")) {
		json_decref(line);
		return true;
	}
	if (!strcmp(type, "at")) {
		end_phase(t);
		t->silent_max_s = 0;
		text_copy(t->phase, sizeof(t->phase), json_string_value(json_object_get(line, "phase")));
		t->phase_ns = clock_now_ns(clock_monotonic());
	} else if (!strcmp(type, "step") || !strcmp(type, "eval")) {
		t->step = (uint64_t)json_integer_value(json_object_get(line, "step"));
		if (!strcmp(type, "step"))
			train_watch_step(t, line);
		tell_numbers(t, line);
	} else if (!strcmp(type, "ready")) {
		json_decref(t->ready);
		t->ready = json_incref(line);
	} else if (!strcmp(type, "saved")) {
		t->saved = true;
	} else if (!strcmp(type, "end")) {
		child_end_take(&t->end, line);
		end_with_others(t);
	} else if (!strcmp(type, "log")) {
		take_log(t, line);
	} else if (!strcmp(type, "listen")) {
		t->ranks.port = (int)json_integer_value(json_object_get(line, "port"));
	} else if (!strcmp(type, "chosen")) {
		train_cache_receive(t, line);
	}
	if (!train_ranks_leads(t)) { /* only rank 0 prints */
		json_decref(line);
		return true;
	}
	if (t->o->json && strcmp(type, "log") && strcmp(type, "at") && strcmp(type, "chosen") &&
	    strcmp(type, "listen")) {
		show_json(line, JSON_COMPACT);
		show_flush();
	}
	if (!strcmp(type, "step"))
		train_show_step(t, line);
	else
		train_show_line(t, type, line);
	json_decref(line);
	return true;
}

static enum status start(struct training *t, struct error *err)
{
	static const char *const argv[] = {NULL, "__trainer", NULL};
	struct process_spec spec = {.argv = argv, .channel = true, .cpu_numa = -1};
	json_t *team = NULL, *first;
	enum status st = train_ranks_place(t, &team, err);

	if (st)
		return st;
	first = json_pack("{s:s, s:b, s:s, s:s, s:i, s:I, s:f, s:O?, s:o?}", "dir", t->dir, "resume",
			  t->goes_on, "config", t->hash, "gpu", t->gpu, "topics", (int)t->c->log->topics,
			  "started", (json_int_t)process_started_ns(), "tuned_s", t->tuned_s, "card", t->card,
			  "team", team);
	t->ranks.board = team_board_create(&t->ranks.board_fd);
	if (t->ranks.board)
		spec.shared = t->ranks.board_fd;
	st = first ? process_start(&t->worker, &spec, err)
		   : error_set(err, STATUS_BUG,
			       "%s: the path is not UTF-8, so it cannot be passed to the worker", t->dir);
	if (!st)
		return lines_send(t->worker.channel, first, 17, NULL, err);
	json_decref(first);
	return st;
}

/* Waits until rank 0's worker listens, and tells the other ranks where. */
static enum status announce(struct training *t, struct error *err)
{
	enum lines_state state = LINES_MORE;
	const uint64_t end = clock_now_ns(clock_monotonic()) + LISTEN_NS;

	if (!train_ranks_several(t) || !train_ranks_leads(t))
		return STATUS_OK;
	while (t->ranks.port < 0 && state == LINES_MORE && !t->end.said && !*t->c->stop &&
	       clock_now_ns(clock_monotonic()) < end) {
		struct pollfd in = {.fd = t->worker.channel, .events = POLLIN};

		if (poll(&in, 1, WAIT_MS) > 0)
			state = lines_read(&t->in, t->worker.channel, take_line, t);
		train_ranks_attend(t);
	}
	return train_ranks_announce(t, err);
}

static void ask_to_end(struct training *t)
{
	t->asked = true;
	if (!process_poll(&t->worker))
		kill(-t->worker.pid, SIGTERM);
}

/* The run directory is lost, so further results cannot be saved: asks the worker to finish its step. The
 * message follows at the end. */
static void heed_home(struct training *t)
{
	train_check_run_dir(t);
	if (t->lost && !t->asked)
		ask_to_end(t);
}

/* Passes the first stop request on, so that the worker saves a checkpoint; the second one ends it. */
static void pass_on_stop(struct training *t)
{
	if (*t->c->stop && !t->asked) {
		ask_to_end(t);
		log_info(t->c->log, LOG_TOPIC_RUN,
			 "stopping: finishing and saving this step; press Ctrl-C again to stop at once");
	}
	if (*t->c->stop > 1)
		process_stop(&t->worker, 0, KILL_MS);
}

/* The time that the worker may be silent: many times its longest silence so far, or the expected time of a
 * micro-batch, plus the time for its files on a slow disk. */
static double patience_s(const struct training *t)
{
	const struct config_training *c = &t->config.training;
	double files_s = t->load_s, longest_s = t->silent_max_s, micro_s = 0;
	double rows = fmax(c->per_device_train_batch_size, c->per_device_eval_batch_size);

	if (t->o->silence > 0)
		return t->o->silence;
	if (t->ready) { /* from here on, files are checkpoints (master weights, m, v) and the model */
		files_s = (16 * info_number(t->ready, "trained") + 4 * info_number(t->ready, "parameters")) /
			  INPUTS_SLOW_DISK;
		micro_s = 8 * info_number(t->ready, "parameters") * rows *
			  (double)t->config.data.max_seq_length / info_number(t->ready, "gemm_rate");
	}
	if (micro_s > longest_s && isfinite(micro_s))
		longest_s = micro_s;
	return silence_s + TIMES * longest_s + files_s;
}

/* Counts silence by our own looks, at most one second each: if this process was suspended, the worker was
 * too. */
static void end_hung(struct training *t)
{
	uint64_t now_ns = clock_now_ns(clock_monotonic());
	double since_s = t->looked_ns ? (double)(now_ns - t->looked_ns) * 1e-9 : 0;

	t->looked_ns = now_ns;
	t->silent_s += since_s < 1 ? since_s : 1;
	if (t->silent_s <= patience_s(t))
		return;
	t->hung = true;
	train_ranks_hung(t);
	process_stop(&t->worker, 0, KILL_MS);
}

/* The worker closed its connection: finds out how it ended. */
static void on_leave(struct training *t)
{
	char how[96];

	for (unsigned ms = 0; ms < LEAVE_MS && !t->hung && !process_poll(&t->worker); ms += 5)
		clock_sleep_ns(clock_monotonic(), 5000000);
	if (t->end.said)
		return;
	if (!process_stop(&t->worker, 0, KILL_MS))
		text_copy(how, sizeof(how), "KILL did not end it");
	else
		process_wait_text(t->worker.wait_status, how, sizeof(how));
	if (t->hung)
		snprintf(how, sizeof(how), "it sent no message for %.0f s and was ended as hung",
			 t->silent_s);
	t->end.status = *t->c->stop ? STATUS_CANCELLED : STATUS_NO_RESOURCE;
	t->end.cause = *t->c->stop ? CAUSE_INTERRUPTED : t->hung ? CAUSE_TIMED_OUT : CAUSE_CRASHED;
	snprintf(t->end.text, sizeof(t->end.text), "the training process ended in phase %s: %s",
		 *t->phase ? t->phase : "start", how);
}

enum status train_follow(struct training *t, struct error *err)
{
	enum lines_state state = LINES_MORE;
	enum status st = start(t, err);

	if (!st)
		st = announce(t, err);
	while (!st && state == LINES_MORE && !t->garbled && !t->hung) {
		struct pollfd in[2 + PEERS] = {{.fd = t->worker.channel, .events = POLLIN},
					       {.fd = job_channel(t->job), .events = POLLIN}};

		poll(in, 2 + train_ranks_fds(t, in + 2, PEERS), WAIT_MS);
		state = lines_read(&t->in, t->worker.channel, take_line, t);
		job_receive(t->job);
		train_ranks_attend(t);
		heed_home(t);
		pass_on_stop(t);
		train_watch_facts(t);
		team_flight_note(t->ranks.board, clock_now_ns(clock_monotonic()));
		if (state == LINES_MORE)
			end_hung(t);
	}
	if (!st)
		on_leave(t);
	else if (t->worker.pid > 0)
		process_stop(&t->worker, 0, KILL_MS);
	if (!st)
		train_ranks_end(t);
	end_phase(t);
	process_release(&t->worker);
	team_board_destroy(&t->ranks.board, &t->ranks.board_fd);
	return st;
}
