/* SPDX-License-Identifier: Apache-2.0 */
/* The state file of `assay health`: the gate, and the baselines of the node's GPUs.
 * docs/explanation/design/health.md, "The state file". */
#ifndef CMD_HEALTH_STATE_H
#define CMD_HEALTH_STATE_H
#include "cmd/health/gate.h"
#include "core/error.h"
#include "core/text/text.h"

enum {
	STATE_FORMAT = 1,
	STATE_BYTES_MAX = 8 << 20,
	STATE_VALUES = 8,      /* figures of a baseline */
	STATE_BASELINES = 256, /* the oldest ones are dropped beyond this */
	STATE_FIGURES = 1024,  /* of one baseline */
	STATE_KEY = 512,
	STATE_NAME = 64,
};

struct baseline_figure {
	char *key; /* owned: the case's key */
	char unit[16];
	double value[STATE_VALUES]; /* finite, above 0; in the order in which they came */
	unsigned count;
};

struct baseline {
	char gpu[STATE_NAME], driver[STATE_NAME];
	double power_limit_w;		/* 0: not known */
	struct baseline_figure *figure; /* owned */
	size_t count;
};

struct health_state { /* valid when zeroed and after health_state_release */
	struct gate gate;
	struct baseline *baseline; /* owned; the most recently added one is last */
	size_t count;
};

/* Reads the text of a state file. BAD_INPUT: it is not a state file, is cut, or holds values outside their
 * limits. UNSUPPORTED: its format is newer than this program. After an error *s is empty. `place` is the
 * file's name in messages. (Fuzzed.) */
enum status health_state_parse(struct health_state *s, const char *place, const char *text, size_t size,
			       struct error *err);
/* Appends the text of the file. NO_RESOURCE: out of memory. */
enum status health_state_text(struct text *out, const struct health_state *s, struct error *err);
/* Reads the file. An absent file is an empty state. It has the errors of health_state_parse, BAD_INPUT if
 * other users can write the file, and UNAVAILABLE if it cannot be read. It sets *damaged if
 * a file of this user was read as a whole and is no state. */
enum status health_state_read(struct health_state *s, const char *path, bool *damaged, struct error *err);
/* Writes the file under a temporary name, and renames it. If that fails, the old file stays. */
enum status health_state_write(const struct health_state *s, const char *path, struct error *err);
void health_state_release(struct health_state *s);

/* Finds the baseline with this key, or adds an empty one. NULL: out of memory. */
struct baseline *health_state_baseline(struct health_state *s, const char *gpu, const char *driver,
				       double power_limit_w);
/* Finds the figure of this case and unit, or adds an empty one. NULL: out of memory, or the baseline is full.
 */
struct baseline_figure *baseline_figure(struct baseline *b, const char *key, const char *unit);
#endif
