/* SPDX-License-Identifier: Apache-2.0 */
/* The result of one run of `assay health`, and its exit code for each caller.
 * docs/explanation/design/health.md. */
#ifndef CMD_HEALTH_FINDING_H
#define CMD_HEALTH_FINDING_H
#include <stdbool.h>
#include <stddef.h>
#include "core/status.h"

enum health_verdict { HEALTH_PASS, HEALTH_FAIL, HEALTH_UNKNOWN };

enum { HEALTH_PART = 16, HEALTH_TEXT = 400, HEALTH_PARTS = 257 };
#define HEALTH_NODE "node" /* the part of a finding about the whole node */

struct health_finding {
	enum health_verdict verdict;
	bool hardware; /* a failure that may drain the node */
	enum cause cause;
	char part[HEALTH_PART]; /* PCI address of the GPU, or HEALTH_NODE */
	char text[HEALTH_TEXT]; /* one line without the verdict */
	/* The parts that this run judged. */
	char looked[HEALTH_PARTS][HEALTH_PART];
	size_t looked_count;
};

struct judged;

/* Returns "pass", "fail" or "unknown". */
const char *health_verdict_name(enum health_verdict verdict);
/* True if a failure for this cause means that a part of the node is broken. */
bool health_is_hardware(enum cause cause);
/* Adds what a judged run says. A hardware failure takes precedence over another failure, a failure over
 * `unknown`, and `unknown` over `pass`. If two are equal, the first stays. */
void health_finding_take(struct health_finding *f, const struct judged *j);
/* Adds one statement by the same order. `part`: NULL for the node. */
void health_finding_add(struct health_finding *f, enum health_verdict verdict, enum cause cause,
			bool hardware, const char *part, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
/* True if the run judged this part. */
bool health_finding_looked(const struct health_finding *f, const char *part);

/* The callers of --for, in the order of their words. */
enum health_caller {
	HEALTH_FOR_NOBODY,
	HEALTH_FOR_SLURM_PROLOG,
	HEALTH_FOR_SLURM_EPILOG,
	HEALTH_FOR_SLURM_HEALTHCHECK,
	HEALTH_FOR_NPD,
	HEALTH_FOR_READINESS,
	HEALTH_CALLERS
};
/* The words of --for, by enum health_caller; NULL ends. */
extern const char *const health_caller_words[];
bool health_caller_is_slurm(enum health_caller caller);
/* The exit code of a verdict for nobody in particular: 0, 1 or 2. */
int health_exit_code(enum health_verdict verdict);
/* Maps an exit code (0, 1, 2, 64) to the one that the caller of --for needs. argv: the words after the
 * command. A word of --for that is misspelt, but begins with "slurm", is a mode of Slurm, because Slurm
 * drains nodes on any other code than 0. */
int health_code_for_caller(int argc, char *const *argv, int code);
/* Writes the line for stdout, without a newline: "fail: 0000:1b:00.0: ...". For node-problem-detector it has
 * at most 80 bytes. Every other character than printable ASCII becomes '?'. */
void health_line(char *out, size_t size, enum health_caller caller, const struct health_finding *f);
#endif
