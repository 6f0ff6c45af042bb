/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/judged.h"
#include <limits.h>
#include <unistd.h>

/* What is stated: `given` where it says anything, else what the run directory keeps (JUDGE_SITE_FILE), else
 * nothing. `path`, PATH_MAX bytes, may be lent to *out. */
static void stated_site(struct judge_site *out, char *path, const char *dir, const struct judge_site *given)
{
	*out = *given;
	snprintf(path, PATH_MAX, "%s/" JUDGE_SITE_FILE, dir);
	if (!given->expect && !given->file && !access(path, F_OK))
		out->file = path;
}

enum status judged_expectations(struct expectations **e, const char *dir, const char *given,
				struct error *err)
{
	char kept[PATH_MAX];
	enum status st;

	snprintf(kept, sizeof(kept), "%s/" JUDGE_EXPECTATIONS_FILE, dir);
	if (!given && !access(kept, F_OK))
		given = kept;
	st = expectations_load(e, given, err);
	if (st == STATUS_UNAVAILABLE) /* named in the command and not there, or not ours to read */
		st = err->status = STATUS_BAD_INPUT;
	return st;
}

enum status judged_read(struct judged *j, const char *dir, const char *expectations,
			const struct judge_site *site, bool real_names, struct error *err)
{
	struct judge_site stated;
	char path[PATH_MAX];
	enum status st;

	*j = (struct judged){0};
	stated_site(&stated, path, dir, site);
	st = record_read_run(&j->record, dir, err);
	if (st ==
	    STATUS_UNAVAILABLE) /* a folder named in the command that is not there, or not ours to read */
		st = err->status = STATUS_BAD_INPUT;
	if (!st)
		st = judged_expectations(&j->expectations, dir, expectations, err);
	if (!st && j->record.machine)
		st = machine_from_json(&j->machine, j->record.machine, err);
	if (!st)
		st = judge_record(&j->judgements, &j->record, j->expectations, &stated, err);
	j->in = (struct report_input){
		.record = &j->record,
		.machine = j->machine,
		.judged = &j->judgements,
		.expectations = j->expectations,
		.real_names = real_names,
	};
	if (st)
		judged_release(j);
	return st;
}

void judged_release(struct judged *j)
{
	judgements_release(&j->judgements);
	machine_free(j->machine);
	record_release(&j->record);
	expectations_free(j->expectations);
	*j = (struct judged){0};
}

int judged_complain(const struct command_context *c, const struct error *err)
{
	log_error(c->log, LOG_TOPIC_RUN, "%s", err->text);
	return err->status == STATUS_BAD_INPUT ? EXIT_USAGE : EXIT_INCONCLUSIVE;
}
