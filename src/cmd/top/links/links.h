/* SPDX-License-Identifier: Apache-2.0 */
/* Views of assay top: NCCL settings, and the state of NVLinks and InfiniBand ports. Helper processes read
 * them (machine/watch/watch.h). Two of their answers make one part as JSON. Text is made only from that JSON,
 * so text and --json always agree. */
#ifndef CMD_TOP_LINKS_LINKS_H
#define CMD_TOP_LINKS_LINKS_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/process/process.h"
#include "core/text/text.h"
#include "judge/judge.h"
#include "machine/machine.h"

/* A helper that answers repeatedly, one line each time, within a time limit. */
struct links_feed {
	const char *what;     /* "nvlink", "ib" */
	json_t *now, *before; /* the last two answers; NULL: none yet */
	char why[200];	      /* why there are no more answers; "": the feed works */
	unsigned answers;
	bool running;
	struct process process;
	struct text line;
	uint64_t heard_ns, limit_ns; /* time of the last answer; maximum time without one */
};

enum status links_feed_start(struct links_feed *f, const char *what, double interval_s, const char *sys,
			     struct error *err);
/* Reads the available answers. Never blocks, except to stop a helper that did not answer in time. */
void links_feed_poll(struct links_feed *f, uint64_t now_ns);
void links_feed_stop(struct links_feed *f);

/*
 * Parts of the state, made from two answers of a feed, or from one (`before` NULL). The caller owns them.
 * nvlink: {"gpus": [{"gpu", "pci", "why"?, "up", "sum": {rates}, "links": [{"link", "active", .., "rates":
 *   {"payload_tx", "payload_rx", "raw_tx", "raw_rx"} in B/s, "rates_why"?, "errors", "risen"?}]}], "why"?,
 *   "none"?}
 * ib: {"ports": [{"device", "port", .., "rates": {"tx", "rx"} in B/s, "rates_why"?, "error_count",
 * "risen"?}], "why"?, "none"?}
 */
json_t *links_nvlink(const json_t *before, const json_t *now, const struct machine *m);
json_t *links_ib(const json_t *before, const json_t *now);
/* The answer that a feed would give on a recorded machine. The caller owns it. */
json_t *links_recorded_nvlink(const struct machine *m);
json_t *links_recorded_ib(const struct machine *m);
/* {"settings": [{"name", "value", "from", "verdict", "says", ..}], "unreadable": [..]}. verdict: ok,
 * hurts, unknown, or unused if another file or variable overrides it. The caller owns the result. */
json_t *links_nccl(const json_t *environment, const json_t *files, const json_t *facts,
		   const struct expectations *e);

/* The total increase of all error counters of a link or port. */
json_int_t links_risen(const json_t *row);
/* The exit code of a state: 0, 1 or 2 (docs/explanation/design/links.md). */
int links_code(const json_t *state);
/* Appends the state {"t", "nccl"?, "nvlink"?, "ib"?} as tables. `detail` shows each link in a row. */
void links_text(struct text *out, const json_t *state, bool detail);
void links_line(struct text *out, const json_t *state);
#endif
