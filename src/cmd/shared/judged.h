/* SPDX-License-Identifier: Apache-2.0 */
/* A run directory, read and judged: what `report`, `roofline` and `archive` begin with. */
#ifndef CMD_SHARED_JUDGED_H
#define CMD_SHARED_JUDGED_H
#include "cmd/command.h"
#include "report/report.h"

struct judged {
	struct expectations *expectations;
	struct record record;
	struct machine *machine;
	struct machine **nodes; /* of several, by node; NULL: its facts are not known */
	struct judgements judgements;
	struct report_input in; /* points into this struct: it is not moved once read */
};

/* Nothing stated in `site`: what the directory keeps is; expectations likewise (judged_expectations). Owner:
 * caller, judged_release. */
enum status judged_read(struct judged *j, const char *dir, const char *expectations,
			const struct judge_site *site, bool real_names, struct error *err);
void judged_release(struct judged *j);
/* What judges the run: `given` where it is not NULL, else what its directory keeps (JUDGE_EXPECTATIONS_FILE,
 * held against the sum in the journal), else the built-in ones. Owner: caller, expectations_free. */
enum status judged_expectations(struct expectations **e, const struct record *r, const char *given,
				struct error *err);

/* Logs the error; the exit code it asks for. */
int judged_complain(const struct command_context *c, const struct error *err);
#endif
