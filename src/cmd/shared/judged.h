/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and judges a run directory: the first step of `report`, `roofline` and `archive`. */
#ifndef CMD_SHARED_JUDGED_H
#define CMD_SHARED_JUDGED_H
#include "cmd/command.h"
#include "price/prices.h"
#include "report/report.h"

struct judged {
	struct expectations *expectations;
	struct prices *prices; /* the built-in ones */
	struct record record;
	struct machine *machine;
	struct machine *
		*nodes; /* machines by node, for several nodes; NULL: the node's facts are not known */
	struct judgements judgements;
	struct report_input in; /* points into this struct, so do not move it once read */
};

/* Reads and judges a run directory. If `site` states nothing, the site file saved in the directory is
 * used; for expectations, see judged_expectations. The caller calls judged_release. */
enum status judged_read(struct judged *j, const char *dir, const char *expectations,
			const struct judge_site *site, bool real_names, struct error *err);
void judged_release(struct judged *j);
/* Loads the expectations: `given` if it is not NULL, else those saved in the run directory
 * (JUDGE_EXPECTATIONS_FILE, checked against the checksum in the journal), else the built-in ones. The
 * caller calls expectations_free. */
enum status judged_expectations(struct expectations **e, const struct record *r, const char *given,
				struct error *err);

/* Judges a run of one process, writes its report, and logs where it is, or why there is none. */
void judged_write_report(const struct log *log, const char *dir, bool real_names);
#endif
