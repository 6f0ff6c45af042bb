/* SPDX-License-Identifier: Apache-2.0 */
/* How a stage ended: verdict, reason, headline and figures, from what its command left in the stage's folder.
 */
#ifndef CMD_STAGES_STAGE_RESULT_H
#define CMD_STAGES_STAGE_RESULT_H
#include <jansson.h>
#include <stdbool.h>
#include "cmd/stages/stage_command.h"

/* X(ID, word, class): class: that of report.css with the fitting colour */
#define STAGE_VERDICTS(X)                                                                                    \
	X(NOT_RUN, "not run", "skip")                                                                        \
	X(PASSED, "passed", "pass")                                                                          \
	X(FAILED, "failed", "fail")                                                                          \
	X(INCONCLUSIVE, "inconclusive", "unknown")                                                           \
	X(SKIPPED, "skipped", "skip")
#define X(id, ...) VERDICT_STAGE_##id,
enum stage_verdict { STAGE_VERDICTS(X) };
#undef X
const char *stage_verdict_word(enum stage_verdict verdict);
const char *stage_verdict_class(enum stage_verdict verdict);
/* The verdict of a command whose exit code is 0, 1 or 2. */
enum stage_verdict stage_verdict_of(int code);

struct stage_result {
	bool asked; /* by the user's list, or everything */
	enum stage_verdict verdict;
	char reason[400], headline[400]; /* reason: of every verdict but passed */
	char page[64];			 /* relative to the folder; "": none */
	double seconds, expected_s;
	json_t *figures; /* array of {"name", "value": number or text, "unit", "note"}; NULL: none */
	struct stage_command command;
};

/* Adds a figure; a value that is not finite is left out. */
void stage_figure(struct stage_result *r, const char *name, double value, const char *unit, const char *note);
void stage_figure_text(struct stage_result *r, const char *name, const char *value, const char *note);
/* Writes the value of a figure with its unit: "4.2 GB/s". */
void stage_figure_value(char *out, size_t size, const json_t *figure);
void stage_say(struct stage_result *r, enum stage_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* INCONCLUSIVE: the command did not leave what it should in `dir`. `what` says so; the last of its messages
 * is added. */
void stage_say_lost(struct stage_result *r, const char *dir, const char *what, int code);
/* Reads a JSON file of a stage's folder; NULL: it does not exist or is no JSON. Owner: caller. */
json_t *stage_read_json(const char *dir, const char *name);
/* Reads a text file of a stage's folder, at most 16 MiB. NULL: there is none. The caller frees it. */
char *stage_read_text(const char *dir, const char *name, size_t *size);

/* The verdict of a command that leaves a run directory: its exit code, with its own words. `results`: its
 * results.json, or NULL. */
void stage_take_run(struct stage_result *r, const char *dir, const json_t *results, int code);
/* The headline of results.json without the verdict that it begins with. */
const char *stage_run_headline(const json_t *results);
/* Adds the figure of each case of results.json. */
void stage_take_cases(struct stage_result *r, const json_t *results);
/* The figure of a case of results.json. False: it has none. */
bool stage_case_figure(const json_t *one, double *value, const char **unit);
/* The values of a job (load, train) over its whole run; NULL: it has none. */
const json_t *stage_job_values(const json_t *results);
/* Those of one of its phases. */
const json_t *stage_phase_values(const json_t *results, const char *name);
/* Headline and figures of a load test. */
void stage_take_load(struct stage_result *r, const json_t *results);
#endif
