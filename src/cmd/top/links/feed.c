/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "cmd/top/links/links.h"
#include "machine/source/source.h"

enum { LINE_BYTES_MAX = 8 << 20, TERM_MS = 300, KILL_MS = 300 };

enum status links_feed_start(struct links_feed *f, const char *what, double interval_s, const char *sys,
			     struct error *err)
{
	char ms[24];
	const char *argv[] = {NULL, "__facts", what, ms, sys, NULL};
	struct process_spec spec = {
		.argv = argv, .capture_output = true, .stderr_apart = true, .cpu_numa = -1};
	enum status st;
	int flags;

	*f = (struct links_feed){.what = what};
	snprintf(ms, sizeof(ms), "%.0f", 1e3 * interval_s);
	st = process_start(&f->process, &spec, err);
	if (st)
		return st;
	f->running = true;
	f->heard_ns = clock_now_ns(clock_monotonic());
	f->limit_ns = (uint64_t)(1e9 * interval_s) + source_limit_ms(LAYER_NVML) * 1000000ull;
	flags = fcntl(f->process.output, F_GETFL);
	if (flags < 0 || fcntl(f->process.output, F_SETFL, flags | O_NONBLOCK)) {
		st = error_errno(err, errno, "cannot read from the helper %s", what);
		links_feed_stop(f);
	}
	return st;
}

static void end(struct links_feed *f, const char *why)
{
	if (!f->running)
		return;
	if (!process_stop(&f->process, TERM_MS, KILL_MS))
		snprintf(f->why, sizeof(f->why), "%s; the helper (pid %d) is stuck and cannot be ended", why,
			 (int)f->process.pid);
	else
		text_copy(f->why, sizeof(f->why), why);
	process_release(&f->process);
	f->running = false;
}

void links_feed_stop(struct links_feed *f)
{
	end(f, "");
	json_decref(f->now);
	json_decref(f->before);
	text_release(&f->line);
	f->now = f->before = NULL;
}

static void take_line(struct links_feed *f, const char *line, size_t size, uint64_t now_ns)
{
	json_t *answer = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(answer)) {
		json_decref(answer);
		end(f, "the helper's answer is not JSON");
		return;
	}
	json_decref(f->before);
	f->before = f->now;
	f->now = answer;
	f->answers++;
	f->heard_ns = now_ns;
}

/* Handles the complete lines and keeps the rest. */
static void take_lines(struct links_feed *f, uint64_t now_ns)
{
	struct text rest = {0};
	const char *p = text_str(&f->line), *end_of_line;

	while (f->running && (end_of_line = strchr(p, '\n'))) {
		take_line(f, p, (size_t)(end_of_line - p), now_ns);
		p = end_of_line + 1;
	}
	text_add(&rest, p);
	text_release(&f->line);
	f->line = rest;
}

static void ended_by_itself(struct links_feed *f)
{
	char how[64], why[160];

	process_wait_text(f->process.wait_status, how, sizeof(how));
	snprintf(why, sizeof(why), "the helper %s ended with %s", f->what, how);
	end(f, why);
}

void links_feed_poll(struct links_feed *f, uint64_t now_ns)
{
	char block[16384], why[160];
	bool more = false;
	ssize_t n;

	while (f->running && (n = read(f->process.output, block, sizeof(block))) > 0) {
		text_add_bytes(&f->line, block, (size_t)n);
		more = true;
		if (f->line.size > LINE_BYTES_MAX || f->line.failed)
			end(f, "the helper's answer is too long");
	}
	if (more)
		take_lines(f, now_ns);
	if (f->running && process_poll(&f->process))
		ended_by_itself(f);
	if (f->running && now_ns - f->heard_ns > f->limit_ns) {
		snprintf(why, sizeof(why), "no answer for %.3g s: the driver or the firmware is stuck",
			 1e-9 * (double)(now_ns - f->heard_ns));
		end(f, why);
	}
}
