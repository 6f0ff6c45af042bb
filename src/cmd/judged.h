/* SPDX-License-Identifier: Apache-2.0 */
/* A run directory, read and judged: what `report`, `roofline` and `archive` begin with. */
#ifndef CMD_JUDGED_H
#define CMD_JUDGED_H
#include "cmd/command.h"
#include "report/report.h"

struct judged {
	struct record record;
	struct machine *machine;
	struct judgements judgements;
	struct report_input in; /* points into this struct: it is not moved once read */
};

/* Nothing stated in `site`: what the directory keeps is. Expectations: NULL for the built-in ones; lent to *j
 * as long as it lives. Owner: caller, judged_release. */
enum status judged_read(struct judged *j, const char *dir, const struct expectations *expectations,
			const struct judge_site *site, bool real_names, struct error *err);
void judged_release(struct judged *j);

/* Logs the error; the exit code it asks for. */
int judged_complain(const struct command_context *c, const struct error *err);
#endif
