/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assay monitor: what NCCL is told, what NVLinks and InfiniBand ports do. Helpers read
 * (machine/watch/watch.h); two of their answers make a part as JSON, and text is made of that alone, so that
 * what is shown and what
 * --json says cannot differ.
 */
#ifndef CMD_MONITOR_MONITOR_H
#define CMD_MONITOR_MONITOR_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/process/process.h"
#include "core/text/text.h"
#include "judge/judge.h"
#include "machine/machine.h"

/* A helper that answers again and again, a line each, within a limit. */
struct monitor_feed {
	const char *what;     /* "nvlink", "ib" */
	json_t *now, *before; /* the last two answers; NULL: not yet */
	char why[200];	      /* why there are no more; "": there are */
	unsigned answers;
	bool running;
	struct process process;
	struct text line;
	uint64_t heard_ns, limit_ns; /* last answer; the longest silence */
};

enum status monitor_feed_start(struct monitor_feed *f, const char *what, double interval_s, const char *sys,
			       struct error *err);
/* Takes what has come; never blocks, but to stop a helper that was silent for too long. */
void monitor_feed_poll(struct monitor_feed *f, uint64_t now_ns);
void monitor_feed_stop(struct monitor_feed *f);

/*
 * Parts, from two answers of a feed or, `before` NULL, one. Owner: caller.
 * nvlink: {"gpus": [{"gpu", "pci", "why"?, "up", "sum": {rates}, "links": [{"link", "active", .., "rates":
 *   {"payload_tx", "payload_rx", "raw_tx", "raw_rx"} in B/s, "rates_why"?, "errors", "risen"?}]}], "why"?,
 *   "none"?}
 * ib: {"ports": [{"device", "port", .., "rates": {"tx", "rx"} in B/s, "rates_why"?, "error_count",
 * "risen"?}], "why"?, "none"?}
 */
json_t *monitor_nvlink(const json_t *before, const json_t *now, const struct machine *m);
json_t *monitor_ib(const json_t *before, const json_t *now);
/* What a feed would have answered on a recorded machine. Owner: caller. */
json_t *monitor_recorded_nvlink(const struct machine *m);
json_t *monitor_recorded_ib(const struct machine *m);
/* {"settings": [{"name", "value", "from", "verdict", "says", ..}], "unreadable": [..]}; verdict: ok, hurts,
 * unknown, or unused where another has its place. Owner: caller. */
json_t *monitor_nccl(const json_t *environment, const json_t *files, const json_t *facts,
		     const struct expectations *e);

/* By how much the error counters of a link or port rose, all together. */
json_int_t monitor_risen(const json_t *row);
/* What a state is worth: 0, 1 or 2 as exit codes have it (docs/explanation/design/monitor.md). */
int monitor_code(const json_t *state);
/* The state {"t", "nccl"?, "nvlink"?, "ib"?}: as tables, or as one line. `detail`: each link in a row. */
void monitor_text(struct text *out, const json_t *state, bool detail);
void monitor_line(struct text *out, const json_t *state);
/* As much of `text` as fits a terminal; what is left out is counted in its last line. */
void monitor_cut(struct text *out, const char *text, unsigned columns, unsigned rows);
#endif
