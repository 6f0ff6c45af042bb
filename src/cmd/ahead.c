/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ahead.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/file.h"
#include "journal/journal.h"
#include "machine/machine.h"

/* judge sees a run directory only, so the plan is written as one: a journal of a machine and a plan, read and
 * removed. */
enum status ahead_record(struct record *r, const struct plan *p, const struct machine *m, struct error *err)
{
	const char *base = getenv("TMPDIR");
	char dir[PATH_MAX];
	struct journal *j = NULL;
	json_t *machine = NULL, *plan = NULL;
	enum status st;

	snprintf(dir, sizeof(dir), "%.3000s/assay-list-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(dir))
		return error_errno(err, errno, "%s: cannot be made", dir);
	machine = json_pack("{s:O}", "facts", machine_json(m));
	plan = plan_json(p, m);
	st = journal_create(&j, dir, false, clock_monotonic(), err);
	if (!st)
		st = journal_append(j, JOURNAL_MACHINE, machine, err);
	if (!st)
		st = journal_append(j, JOURNAL_PLAN, plan, err);
	journal_close(&j);
	if (!st)
		st = record_read(r, dir, err);
	json_decref(machine);
	json_decref(plan);
	file_remove_tree(dir);
	return st;
}

enum status ahead_expected(struct expected_ahead **out, const struct plan *p, const struct machine *m,
			   const struct expectations *e, struct error *err)
{
	struct judgements judged = {0};
	struct record record = {0};
	enum status st = ahead_record(&record, p, m, err);

	*out = calloc(p->case_count + 1, sizeof(**out));
	if (!st && !*out)
		st = error_errno(err, ENOMEM, "what %zu cases should reach", p->case_count);
	if (!st)
		st = judge_ahead(&judged, &record, e, err);
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
