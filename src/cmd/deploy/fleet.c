/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a deployment: all runs that came back as one report, and their comparison. */
#include "cmd/deploy/deploy.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include "cmd/compare/compare.h"
#include "cmd/shared/judged.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "core/file/file.h"

enum { RUNS_MOST = 4096 };

struct fleet {
	char (*dir)[PATH_MAX];
	size_t *host; /* of each run */
	struct judged *judged;
	size_t count;
};

static int no_dots(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static enum status add_run(struct fleet *f, const char *dir, size_t host, struct error *err)
{
	char(*dirs)[PATH_MAX] = realloc(f->dir, (f->count + 1) * sizeof(*dirs));
	size_t *hosts = realloc(f->host, (f->count + 1) * sizeof(*hosts));

	f->dir = dirs ? dirs : f->dir;
	f->host = hosts ? hosts : f->host;
	if (!dirs || !hosts)
		return error_errno(err, ENOMEM, "no memory for the runs");
	text_copy(f->dir[f->count], PATH_MAX, dir);
	f->host[f->count++] = host;
	return STATUS_OK;
}

/* The run directories of one host, in name order: those that the command made in its working folder, and the
 * folder of --out in it. */
static enum status find_runs(struct fleet *f, const char *folder, size_t host, unsigned depth,
			     struct error *err)
{
	char path[PATH_MAX + 300];
	struct dirent **entry = NULL;
	int count = scandir(folder, &entry, no_dots, alphasort);
	enum status st = STATUS_OK;

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
		if (st || f->count == RUNS_MOST || strlen(path) >= PATH_MAX)
			;
		else if (run_dirs_is(path))
			st = add_run(f, path, host, err);
		else if (depth && entry[i]->d_type == DT_DIR)
			st = find_runs(f, path, host, depth - 1, err);
		free(entry[i]);
	}
	free(entry);
	return st;
}

/* Judges each run. A run that cannot be read is left out, with a warning. */
static void judge_runs(struct fleet *f, const struct log *log)
{
	const struct judge_site site = {0};
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++) {
		struct error why = {0};

		if (judged_read(&f->judged[kept], f->dir[i], NULL, &site, false, &why)) {
			log_warn(log, LOG_TOPIC_JUDGE, "%s is left out of the report: %s", f->dir[i],
				 why.text);
			judged_release(&f->judged[kept]);
			f->judged[kept] = (struct judged){0};
			continue;
		}
		if (kept != i)
			memmove(f->dir[kept], f->dir[i], PATH_MAX);
		f->host[kept++] = f->host[i];
	}
	f->count = kept;
}

static enum status write_report(const struct fleet *f, const struct deploy *d, const struct log *log,
				struct error *err)
{
	struct report_input *in = calloc(f->count, sizeof(*in));
	struct text note = {0};
	enum status st;

	if (!in)
		return error_errno(err, ENOMEM, "no memory for %zu runs", f->count);
	for (size_t i = 0; i < f->count; i++)
		in[i] = f->judged[i].in;
	st = report_write_merged(d->folder, in, f->count, PLOT_SVG, &note, err);
	if (note.size)
		log_info(log, LOG_TOPIC_RUN, "%.*s", (int)(note.size - 1), text_str(&note));
	text_release(&note);
	free(in);
	return st;
}

static enum status compare(struct text *out, const struct fleet *f, int *code, struct error *err)
{
	struct compare_run *runs = calloc(f->count, sizeof(*runs));
	struct comparison result = {0};
	enum status st;

	*code = EXIT_PASS;
	if (!runs)
		return error_errno(err, ENOMEM, "no memory for %zu runs", f->count);
	for (size_t i = 0; i < f->count; i++)
		runs[i] = (struct compare_run){.name = f->dir[i],
					       .record = &f->judged[i].record,
					       .judged = &f->judged[i].judgements};
	st = compare_runs(&result, runs, f->count, COMPARE_FLEET, err);
	if (!st) {
		compare_show(out, &result, runs, f->count, false);
		*code = result.exit_code == EXIT_FAILED ? EXIT_FAILED : EXIT_PASS;
	}
	comparison_release(&result);
	free(runs);
	return st;
}

/* The exit code that counts more: 1, then 2, then 64, then 0. */
static int worse(int a, int b)
{
	static const int order[] = {EXIT_FAILED, EXIT_INCONCLUSIVE, EXIT_USAGE};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return EXIT_PASS;
}

static int code_of(const struct deploy_host *h)
{
	if (h->state != HOST_CLEANED)
		return EXIT_INCONCLUSIVE;
	switch (h->exit_code) {
	case EXIT_PASS:
	case EXIT_FAILED:
	case EXIT_USAGE:
		return h->exit_code;
	default:
		return EXIT_INCONCLUSIVE;
	}
}

static void hosts_table(struct text *out, const struct deploy *d, const struct fleet *f)
{
	size_t wide = strlen("host");

	for (size_t i = 0; i < d->count; i++)
		wide = strlen(d->host[i].name) > wide ? strlen(d->host[i].name) : wide;
	text_addf(out, "%-*s  state    exit  run\n", (int)wide, "host");
	for (size_t i = 0; i < d->count; i++) {
		const struct deploy_host *h = &d->host[i];
		const char *run = "";

		for (size_t k = 0; k < f->count && !*run; k++)
			if (f->host[k] == i)
				run = f->dir[k] + strlen(d->folder) + 1;
		text_addf(out, "%-*s  %-8s ", (int)wide, h->name, host_state_name(h->state));
		if (h->exit_code >= 0)
			text_addf(out, "%4d", h->exit_code);
		else
			text_add(out, "   -");
		text_addf(out, "  %s%s%s\n", run, *run && *h->reason ? "; " : "", h->reason);
	}
}

static enum status gather(struct fleet *f, const struct deploy *d, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < d->count && !st; i++) {
		char folder[PATH_MAX], work[PATH_MAX + 8];

		deploy_host_folder(folder, d, &d->host[i]);
		snprintf(work, sizeof(work), "%s/work", folder);
		st = find_runs(f, work, i, 1, err);
	}
	f->judged = calloc(f->count + 1, sizeof(*f->judged));
	return st || f->judged ? st : error_errno(err, ENOMEM, "no memory for %zu runs", f->count);
}

enum status fleet_report(const struct deploy *d, const struct command_context *c, int *code,
			 struct error *err)
{
	struct fleet f = {0};
	struct text out = {0};
	char path[PATH_MAX];
	int outliers = EXIT_PASS;
	enum status st = gather(&f, d, err);

	if (!st)
		judge_runs(&f, c->log);
	*code = EXIT_PASS;
	for (size_t i = 0; i < d->count; i++)
		*code = worse(*code, code_of(&d->host[i]));
	hosts_table(&out, d, &f);
	if (!st && f.count)
		st = write_report(&f, d, c->log, err);
	if (!st && f.count > 1) {
		text_add(&out, "\n");
		st = compare(&out, &f, &outliers, err);
		*code = worse(*code, outliers);
	}
	snprintf(path, sizeof(path), "%.4000s/fleet.txt", d->folder);
	if (!st)
		st = file_write(path, text_str(&out), out.size, err);
	if (!st && f.count)
		text_addf(&out, "\nreport: %s/REPORT.md\n", d->folder);
	show_text(&out, UTF8_KEEP_NOTHING);
	for (size_t i = 0; f.judged && i < f.count; i++)
		judged_release(&f.judged[i]);
	free(f.judged);
	free(f.dir);
	free(f.host);
	text_release(&out);
	return st;
}
