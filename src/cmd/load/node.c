/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler of the server's node, over ssh, by the assay that is installed there. Its times are on its own
 * clock: the node first says how long it has been up, and the difference to our clock moves them. The error
 * is the time that this line needed to arrive.
 */
#include <fcntl.h>
#include "cmd/load/load.h"
#include "core/clock.h"

enum { TERM_MS = 500, KILL_MS = 500, DIGITS = 17 };
static const char command[] = "cat /proc/uptime && exec assay __sample all 3>&1 1>&2";

enum status load_node_start(struct loading *l, struct error *err)
{
	const char *const argv[] = {"ssh", "-T", "-o", "BatchMode=yes", "--", l->o->node, command, NULL};
	const struct process_spec spec = {
		.argv = argv, .capture_output = true, .stderr_apart = true, .cpu_numa = -1};
	enum status st;

	if (!l->o->node)
		return STATUS_OK;
	if (*l->o->node == '-')
		return error_set(err, STATUS_BAD_INPUT, "--node %.100s: not the name of a host", l->o->node);
	st = process_start(&l->node.process, &spec, err);
	l->node.running = !st;
	if (!st)
		fcntl(l->node.process.output, F_SETFL, O_NONBLOCK);
	return st;
}

/* The first line is the node's time since its start, in seconds. */
static void take_clock(struct loading *l, const char *line)
{
	const double up_s = strtod(line, NULL);

	l->node_offset_ns = (int64_t)clock_now_ns(clock_monotonic()) - (int64_t)(up_s * 1e9);
	l->node_clock = up_s > 0;
}

static bool take_line(void *arg, const char *text, size_t size)
{
	struct loading *l = arg;
	json_t *line, *at;
	char *moved;
	size_t i;

	if (!l->node_clock) {
		char first[64];

		snprintf(first, sizeof(first), "%.*s", (int)(size < 60 ? size : 60), text);
		take_clock(l, first);
		if (!l->node_clock)
			log_warn(l->c->log, LOG_TOPIC_RUN,
				 "no telemetry of %s: it does not say how long it has been up", l->o->node);
		return l->node_clock;
	}
	line = json_loadb(text, size, 0, NULL);
	json_array_foreach(json_object_get(line, "at"), i, at)
		json_integer_set(at, json_integer_value(at) + (json_int_t)l->node_offset_ns);
	moved = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
	if (moved)
		job_take_line(l->job, moved, strlen(moved));
	free(moved);
	json_decref(line);
	return true;
}

void load_node_read(struct loading *l)
{
	if (!l->node.running || lines_read(&l->node.in, l->node.process.output, take_line, l) == LINES_MORE)
		return;
	log_warn(
		l->c->log, LOG_TOPIC_RUN,
		"no telemetry of %s any more: ssh or the assay there ended (it must be installed and on the PATH)",
		l->o->node);
	load_node_stop(l);
}

void load_node_stop(struct loading *l)
{
	if (!l->node.running)
		return;
	process_stop(&l->node.process, TERM_MS, KILL_MS);
	process_release(&l->node.process);
	lines_release(&l->node.in);
	l->node.running = false;
}
