/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/running/plan_preview.h"
#include <errno.h>
#include "machine/machine.h"

/* Works in memory: a folder would remain after a kill, and would need a writable place. */
enum status plan_preview_record(struct record *r, const struct plan *p, const struct machine *m,
				struct error *err)
{
	json_t *plan = plan_json(p, m);
	enum status st = plan ? record_planned(r, machine_json(m), plan, err)
			      : error_errno(err, ENOMEM, "a plan of %zu cases", p->case_count);

	json_decref(plan);
	return st;
}

enum status plan_preview_expected(struct expected_before_run **out, const struct plan *p,
				  const struct machine *m, const struct expectations *e, struct error *err)
{
	struct judgements judged = {0};
	struct record record = {0};
	enum status st = plan_preview_record(&record, p, m, err);

	*out = calloc(p->case_count + 1, sizeof(**out));
	if (!st && !*out)
		st = error_errno(err, ENOMEM, "the expected ranges of %zu cases", p->case_count);
	if (!st)
		st = judge_plan(&judged, &record, e, err);
	for (size_t i = 0; !st && i < record.case_count && i < judged.count && i < p->case_count; i++)
		(*out)[i] = judged.of_case[i].ahead;
	judgements_release(&judged);
	record_release(&record);
	if (st) {
		free(*out);
		*out = NULL;
	}
	return st;
}
