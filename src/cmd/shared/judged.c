/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/judged.h"
#include <limits.h>
#include <unistd.h>
#include "cmd/shared/input_hashes.h"
#include "cmd/shared/checked_expectations.h"

/* Finds the site file: `given` if it says anything, else the one saved in the run directory
 * (JUDGE_SITE_FILE), else none. *out may point into `path`, a buffer of PATH_MAX bytes. */
static enum status stated_site(struct judge_site *out, char *path, const struct record *r,
			       const struct judge_site *given, struct error *err)
{
	enum status st;

	*out = *given;
	if (given->expect || given->file)
		return STATUS_OK;
	st = input_hashes_check(r, JUDGE_SITE_FILE, err);
	snprintf(path, PATH_MAX, "%s/" JUDGE_SITE_FILE, r->dir);
	if (!st && !access(path, F_OK))
		out->file = path;
	return st;
}

enum status judged_expectations(struct expectations **e, const struct record *r, const char *given,
				struct error *err)
{
	char kept[PATH_MAX + 32];
	enum status st = given ? STATUS_OK : input_hashes_check(r, JUDGE_EXPECTATIONS_FILE, err);

	snprintf(kept, sizeof(kept), "%s/" JUDGE_EXPECTATIONS_FILE, r->dir);
	if (!st && !given &&
	    !access(kept, F_OK)) /* a given file was checked against the expectations before the run */
		st = expectations_load(e, kept, err);
	else if (!st)
		st = checked_expectations_load(e, given, err);
	if (st == STATUS_UNAVAILABLE) /* a file that the command names does not exist or cannot be read */
		st = err->status = STATUS_BAD_INPUT;
	return st;
}

static enum status node_machines(struct judged *j, struct error *err)
{
	const struct record *r = &j->record;
	enum status st = STATUS_OK;

	if (!r->node_count)
		return STATUS_OK;
	j->nodes = calloc(r->node_count, sizeof(struct machine *));
	if (!j->nodes)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "out of memory for %zu nodes", r->node_count);
	for (size_t i = 0; i < r->node_count && !st; i++)
		if (r->node[i].machine)
			st = machine_from_json(&j->nodes[i], r->node[i].machine, err);
	return st;
}

enum status judged_read(struct judged *j, const char *dir, const char *expectations,
			const struct judge_site *site, bool real_names, struct error *err)
{
	struct judge_site stated;
	char path[PATH_MAX];
	enum status st;

	*j = (struct judged){0};
	st = record_read_run(&j->record, dir, err);
	if (st == STATUS_UNAVAILABLE) /* a folder that the command names does not exist or cannot be read */
		st = err->status = STATUS_BAD_INPUT;
	if (!st)
		st = judged_expectations(&j->expectations, &j->record, expectations, err);
	if (!st)
		st = stated_site(&stated, path, &j->record, site, err);
	if (!st && j->record.machine)
		st = machine_from_json(&j->machine, j->record.machine, err);
	if (!st)
		st = node_machines(j, err);
	if (!st)
		st = prices_load(&j->prices, NULL, err);
	if (!st)
		st = judge_record(&j->judgements, &j->record, j->expectations, &stated, err);
	j->in = (struct report_input){
		.record = &j->record,
		.machine = j->machine,
		.nodes = (const struct machine *const *)j->nodes,
		.judged = &j->judgements,
		.expectations = j->expectations,
		.prices = j->prices,
		.real_names = real_names,
	};
	if (st)
		judged_release(j);
	return st;
}

void judged_release(struct judged *j)
{
	judgements_release(&j->judgements);
	for (size_t i = 0; j->nodes && i < j->record.node_count; i++)
		machine_free(j->nodes[i]);
	free(j->nodes);
	machine_free(j->machine);
	record_release(&j->record);
	expectations_free(j->expectations);
	prices_free(j->prices);
	*j = (struct judged){0};
}

void judged_write_report(const struct log *log, const char *dir, bool real_names)
{
	static const struct judge_site site = {0};
	struct judged judged = {0};
	struct text note = {0};
	struct error err = {0};
	enum status st = judged_read(&judged, dir, NULL, &site, real_names, &err);

	if (!st)
		st = report_write(dir, &judged.in, &note, &err);
	if (st)
		log_warn(log, LOG_TOPIC_RUN, "no report: %s", err.text);
	else
		log_info(log, LOG_TOPIC_RUN, "report: %s/report.html, or: assay report %s", dir, dir);
	text_release(&note);
	judged_release(&judged);
}
