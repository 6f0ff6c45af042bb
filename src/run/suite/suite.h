/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed suite, for run/plan/plan.c. It has only words; nothing is resolved yet. Grammar:
 * docs/explanation/design/suite.md. */
#ifndef RUN_SUITE_SUITE_H
#define RUN_SUITE_SUITE_H
#include "run/plan/case.h"

/* Largest number of values of one option, and of engines or targets of one line. */
enum { SUITE_VALUES_MAX = 10000 };

struct words {
	char **word; /* owned */
	size_t count;
};

struct suite_option {
	char *name;
	struct words values; /* several values make a cross product */
	int line;
};

/* One line of `cases`. An absent key gives an empty list of words, or the number 0. */
struct suite_case {
	char *probe, *group; /* group NULL: the engine determines it */
	struct words engines, targets;
	struct suite_option *option;
	size_t option_count;
	enum phases phases;
	enum require require;
	bool require_said; /* the suite states `require: judged` explicitly */
	double seconds, seconds_capped, limit_s;
	int line, engine_line, target_line;
};

struct suite_step {
	struct suite_case *cases;
	size_t count;
	enum step_order order;
};

struct suite {
	char *name, *description;
	char *place;	 /* the file, or "command line" */
	double within_s; /* time limit of the run for a second round; 0: none */
	struct suite_step *steps;
	size_t count;
};

/* Writes "file:line" for messages. */
void suite_place(const struct suite *s, int line, char *out, size_t size);

/* SUITES_BUILTIN: room for all built-in suites. SUITE_NAME: bytes of a name with its NUL. */
enum { SUITES_BUILTIN = 32, SUITE_NAME = 64 };
/* Writes the names of the built-in suites, such as "quick", in name order. Returns their number, at most
 * `room`. */
size_t suite_builtin_names(char names[][SUITE_NAME], size_t room);
#endif
