/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler of the server's node, over ssh, by the assay that is installed there. Its times are on its own
 * clock. So the node is first asked for its time: the answer was read between question and arrival. The
 * quickest of several answers gives the difference of the clocks, and half its round trip is the error.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "cmd/load/load.h"
#include "core/clock.h"
#include "core/json/member.h"

enum { TERM_MS = 500, KILL_MS = 500, DIGITS = 17, ASKED = 10, LOOK_MS = 100 };
/* ssh, the tokenizer-free start of assay, and the start of NVML on the node. */
static const uint64_t patience_ns = 30000000000u;
/* Clocks of two nodes may run apart by so much: crystals keep 50 ppm each. */
static const double drift_most = 1e-4;
static const char command[] = "exec assay __sample all 3>&1 1>&2";

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

/* One question for the node's time, or the word to begin. */
static void send_word(struct loading *l, const char *word)
{
	struct load_node *n = &l->node;

	n->sent_ns = now_ns();
	if (send(n->input, word, strlen(word), MSG_NOSIGNAL) < 0)
		log_debug(l->c->log, LOG_TOPIC_RUN, "%s: ssh takes no input", l->o->node);
}

/* Takes the node's time, and asks again or lets it begin. */
static bool take_clock(struct loading *l, const json_t *line)
{
	struct load_node *n = &l->node;
	const uint64_t arrived_ns = now_ns(), trip_ns = arrived_ns - n->sent_ns;
	const json_t *clock = json_object_get(line, "clock");

	if (!json_is_integer(clock)) {
		log_warn(l->c->log, LOG_TOPIC_RUN,
			 "no telemetry of %s: the assay there does not tell its clock; install this version",
			 l->o->node);
		return false;
	}
	if (!n->answers || trip_ns < n->trip_ns) {
		n->trip_ns = trip_ns;
		n->offset_ns = (int64_t)(n->sent_ns + trip_ns / 2) - (int64_t)json_integer_value(clock);
		n->known_ns = arrived_ns;
	}
	send_word(l, ++n->answers < ASKED ? "clock\n" : "go\n");
	return true;
}

static void note_gpu(struct load_node *n, const char *source)
{
	if (!n->gpus)
		n->gpus = json_object();
	if (!strncmp(source, "gpu:", 4))
		json_object_set_new(n->gpus, source, json_true());
}

static void take_telemetry(struct loading *l, json_t *line)
{
	json_t *at;
	char *moved;
	size_t i;

	json_array_foreach(json_object_get(line, "at"), i, at)
		json_integer_set(at, json_integer_value(at) + (json_int_t)l->node.offset_ns);
	moved = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
	if (moved)
		job_take_line(l->job, moved, strlen(moved));
	l->node.samples = l->node.samples || moved;
	if (load_silence_heard(&l->node.silence, now_ns()))
		log_info(l->c->log, LOG_TOPIC_RUN, "telemetry of %s comes again", l->o->node);
	note_gpu(&l->node, json_member_text(line, "source"));
	free(moved);
}

static bool take_line(void *arg, const char *text, size_t size)
{
	struct loading *l = arg;
	json_t *line = json_loadb(text, size, 0, NULL);
	bool good = true;

	if (l->node.answers < ASKED)
		good = take_clock(l, line);
	else
		take_telemetry(l, line);
	json_decref(line);
	return good;
}

static void stop_sampler(struct loading *l)
{
	struct load_child *child = &l->node.child;

	if (!child->running)
		return;
	process_stop(&child->process, TERM_MS, KILL_MS);
	process_release(&child->process);
	lines_release(&child->in);
	close(l->node.input);
	child->running = false;
}

/* Waits for the first telemetry, so that idle power is measured with it. A node that does not answer costs
 * its telemetry, not the run. */
static void wait_for_samples(struct loading *l)
{
	const uint64_t begun_ns = now_ns();

	while (l->node.child.running && !l->node.samples && !*l->c->stop) {
		struct pollfd in = {.fd = l->node.child.process.output, .events = POLLIN};

		poll(&in, 1, LOOK_MS);
		load_node_read(l);
		if (l->node.child.running && !l->node.samples && now_ns() - begun_ns > patience_ns) {
			log_warn(l->c->log, LOG_TOPIC_RUN, "no telemetry of %s: no answer within %.0f s",
				 l->o->node, (double)patience_ns * 1e-9);
			stop_sampler(l);
		}
	}
}

enum status load_node_start(struct loading *l, struct error *err)
{
	const char *const argv[] = {"ssh", "-T", "-o", "BatchMode=yes", "--", l->o->node, command, NULL};
	struct process_spec spec = {
		.argv = argv, .capture_output = true, .stderr_apart = true, .cpu_numa = -1};
	int input[2];
	enum status st;

	if (!l->o->node)
		return STATUS_OK;
	load_silence_begin(&l->node.silence, now_ns());
	if (*l->o->node == '-')
		return error_set(err, STATUS_BAD_INPUT, "--node %.100s: not the name of a host", l->o->node);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input))
		return error_errno(err, errno, "--node %.100s", l->o->node);
	spec.input = &input[0];
	st = process_start(&l->node.child.process, &spec, err);
	close(input[0]);
	l->node.child.running = !st;
	l->node.input = input[1];
	if (st) {
		close(input[1]);
		return st;
	}
	fcntl(l->node.child.process.output, F_SETFL, O_NONBLOCK);
	send_word(l, "clock\n");
	wait_for_samples(l);
	return STATUS_OK;
}

static void tell_silence(struct loading *l)
{
	if (load_silence_noticed(&l->node.silence, now_ns()))
		log_warn(
			l->c->log, LOG_TOPIC_RUN,
			"no telemetry of %s for %.0f s: the node or the network is gone; the load test continues",
			l->o->node, LOAD_SILENCE_S);
}

void load_node_read(struct loading *l)
{
	struct load_child *child = &l->node.child;

	if (!child->running)
		return;
	if (lines_read(&child->in, child->process.output, take_line, l) == LINES_MORE) {
		tell_silence(l);
		return;
	}
	log_warn(
		l->c->log, LOG_TOPIC_RUN,
		"no telemetry of %s any more: ssh or the assay there ended (it must be installed and on the PATH)",
		l->o->node);
	load_silence_ended(&l->node.silence);
	stop_sampler(l);
}

void load_node_stop(struct loading *l)
{
	stop_sampler(l);
	if (l->node.silence.begun_ns)
		load_silence_close(&l->node.silence, now_ns());
}

void load_node_release(struct loading *l)
{
	json_decref(l->node.gpus);
	load_silence_release(&l->node.silence);
}

json_t *load_node_values(const struct loading *l)
{
	const struct load_node *n = &l->node;
	const double since_s = (double)(now_ns() - n->known_ns) * 1e-9;

	return n->samples ? json_pack("{s:f, s:f}", "clock_offset_s", (double)n->offset_ns * 1e-9,
				      "clock_error_s", (double)n->trip_ns * 0.5e-9 + drift_most * since_s)
			  : NULL;
}

size_t load_node_gpus(const struct loading *l)
{
	return json_object_size(l->node.gpus);
}
