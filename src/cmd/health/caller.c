/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes for the callers of `assay health`. Table: docs/explanation/design/health.md. */
#include <stdio.h>
#include <string.h>
#include "cmd/command.h"
#include "cmd/health/finding.h"

enum { NPD_BYTES = 80 }; /* max_output_length of node-problem-detector, by default */

const char *const health_caller_words[] = {
	"nobody", "slurm-prolog", "slurm-epilog", "slurm-healthcheck", "npd", "readiness", NULL};

static const struct {
	int pass, fail, unknown, usage;
} codes[HEALTH_CALLERS] = {
	[HEALTH_FOR_NOBODY] = {EXIT_PASS, EXIT_FAILED, EXIT_INCONCLUSIVE, EXIT_USAGE},
	/* Slurm drains the node on any other code of a prolog or an epilog. */
	[HEALTH_FOR_SLURM_PROLOG] = {0, 0, 0, 0},
	[HEALTH_FOR_SLURM_EPILOG] = {0, 0, 0, 0},
	[HEALTH_FOR_SLURM_HEALTHCHECK] = {0, 0, 0, 0},
	[HEALTH_FOR_NPD] = {0, 1, 2, 2},
	[HEALTH_FOR_READINESS] = {0, 1, 0, 0},
};

bool health_caller_is_slurm(enum health_caller caller)
{
	return caller == HEALTH_FOR_SLURM_PROLOG || caller == HEALTH_FOR_SLURM_EPILOG ||
	       caller == HEALTH_FOR_SLURM_HEALTHCHECK;
}

int health_exit_code(enum health_verdict verdict)
{
	return verdict == HEALTH_PASS ? EXIT_PASS : verdict == HEALTH_FAIL ? EXIT_FAILED : EXIT_INCONCLUSIVE;
}

static bool names(const char *word, enum health_caller *caller)
{
	for (int i = 0; i < HEALTH_CALLERS; i++)
		if (!strcmp(word, health_caller_words[i])) {
			*caller = (enum health_caller)i;
			return true;
		}
	return false;
}

static enum health_caller caller_of(int argc, char *const *argv)
{
	enum health_caller caller = HEALTH_FOR_NOBODY, named;

	for (int i = 0; i < argc; i++) {
		const char *word = !strncmp(argv[i], "--for=", 6)	       ? argv[i] + 6
				   : !strcmp(argv[i], "--for") && i + 1 < argc ? argv[i + 1]
									       : "";

		if (names(word, &named))
			caller = named;
		else if (!strncmp(word, "slurm", 5))
			caller = HEALTH_FOR_SLURM_PROLOG;
	}
	return caller;
}

int health_code_for_caller(int argc, char *const *argv, int code)
{
	enum health_caller caller = caller_of(argc, argv);

	return code == EXIT_PASS     ? codes[caller].pass
	       : code == EXIT_FAILED ? codes[caller].fail
	       : code == EXIT_USAGE  ? codes[caller].usage
				     : codes[caller].unknown;
}

const char *health_verdict_name(enum health_verdict verdict)
{
	return verdict == HEALTH_PASS ? "pass" : verdict == HEALTH_FAIL ? "fail" : "unknown";
}

void health_line(char *out, size_t size, enum health_caller caller, const struct health_finding *f)
{
	bool of_gpu = *f->part && strcmp(f->part, HEALTH_NODE) != 0;
	size_t most = caller == HEALTH_FOR_NPD && size > NPD_BYTES + 1 ? NPD_BYTES + 1 : size;

	snprintf(out, most, "%s: %s%s%s", health_verdict_name(f->verdict), of_gpu ? f->part : "",
		 of_gpu ? ": " : "", f->text);
	for (char *c = out; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}
