/* SPDX-License-Identifier: Apache-2.0 */
/* Sample runs: tests/data/report/NAME/journal.jsonl read as a run directory, and judgements from judged.json
 * beside it (so that the renderings have tests of their own, whatever the judge says of these runs). */
#ifndef TESTS_REPORT_SAMPLE_H
#define TESTS_REPORT_SAMPLE_H
#include "report/report.h"

struct sample {
	struct record record;
	struct machine *machine;
	struct judgements judged;
	struct expectations *expectations;
	struct report_input in;
};

/* Fails the test where the sample cannot be read. */
void sample_load(struct sample *s, const char *name);
void sample_release(struct sample *s);

/* Compares with tests/data/report/NAME/FILE; with UPDATE=1 in the environment writes it instead. */
void sample_golden(const char *name, const char *file, const char *text);

/* False: this build has none of that name. */
bool sample_has_module(const char *name);
#endif
