/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of a machine, as processes: `test_NAME __watch node` plays assay. It reads a machine of fakes
 * (watch_machine.h), and the test looks at the state that its lines make.
 */
#ifndef TESTS_UNIT_READER_BED_H
#define TESTS_UNIT_READER_BED_H
#include "watch_machine.h"
#include "core/clock.h"
#include "watch/feed.h"
#include "watch/record.h"

enum { PATIENCE_S = 60 };

struct bed {
	const char *root;
	char sys[PATH_MAX], proc[PATH_MAX], runs[PATH_MAX], kmsg[PATH_MAX];
	struct watch_feed *feed;
};

/* The end of main: runs the tests, or plays the reader if the process was started as one. */
int bed_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t count);
#define BED_MAIN(argc, argv, name, tests)                                                                    \
	bed_main(argc, argv, name, tests, sizeof(tests) / sizeof((tests)[0]))

/* Starts the reader of the machine below `root`. */
void bed_start(struct bed *b, const char *root, double interval);
/* Ends it, and takes back what the environment says to the fakes. */
void bed_stop(struct bed *b);
const struct watch_state *bed_state(const struct bed *b);
/* The first entity of a scope whose label has this value. */
const struct watch_entity *bed_find(const struct watch_state *s, enum metric_scope scope, const char *label,
				    const char *value);
const struct watch_entity *bed_gpu(const struct bed *b, unsigned i);
/* A label of the process with this number; NULL: there is none yet. */
const char *bed_process_label(const struct bed *b, const char *pid, const char *label);
/* -1e300: there is no entity or value. */
double bed_value(const struct watch_entity *e, enum catalogue row);

#define BED_WAIT(bed, condition)                                                                             \
	do {                                                                                                 \
		uint64_t patience_ns = clock_now_ns(clock_monotonic()) + PATIENCE_S * 1000000000ull;         \
		while (!(condition) && clock_now_ns(clock_monotonic()) < patience_ns)                        \
			bed_turn(bed);                                                                       \
		if (!(condition))                                                                            \
			bed_give_up(bed, #condition);                                                        \
	} while (0)
/* Takes the lines of the next 20 ms. */
void bed_turn(struct bed *b);
void bed_give_up(struct bed *b, const char *condition);

/*
 * Records all lines from now on. A source's reason may last for one reading only. A test that looks at the
 * state now and then can miss it, so it looks at the lines.
 */
struct watch_recorder *bed_record(struct bed *b);
/* Ends the recording. Appends its lines, at most 16 MB. */
void bed_recorded(struct bed *b, struct watch_recorder *r, struct text *out);
/* The rest of the first line with these words, behind them; fails if there is none. Owner: caller. */
char *bed_recorded_after(const struct text *lines, const char *words);
#endif
