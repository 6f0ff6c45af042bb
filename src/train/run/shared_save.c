/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that all ranks write, each its shard (docs/explanation/design/checkpoints.md). All functions
 * are called by all ranks at the same point of the run. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/math/random.h"
#include "core/json/member.h"
#include "train/run/internal.h"
#include "train/run/shared_save.h"

enum { REPORT = 8192 }; /* bytes of a rank's report */

/* -- the start: whether all ranks see the run directory -- */

struct mark { /* what rank 0 sends */
	char path[PATH_MAX + 32];
	char attempt[17];
};

/* Makes a file that the others look for. */
static enum status leave_mark(struct train *t, struct mark *m, struct error *err)
{
	char *whole = realpath(t->dir, NULL);
	enum status st;

	if (!whole || !random_hex(t->saving.attempt, sizeof(t->saving.attempt))) {
		free(whole);
		return error_set(err, STATUS_UNAVAILABLE,
				 "%s: cannot find the run directory, or no random bytes", t->dir);
	}
	text_copy(m->attempt, sizeof(m->attempt), t->saving.attempt);
	snprintf(m->path, sizeof(m->path), "%s/.shared-%s", whole, m->attempt);
	free(whole);
	st = file_write(m->path, m->attempt, strlen(m->attempt), err);
	return st;
}

static bool sees(const struct mark *m)
{
	char *text = NULL, dir[PATH_MAX + 32];
	size_t size;
	bool same;

	if (file_read(&text, &size, m->path, sizeof(m->attempt), NULL))
		return false;
	text_copy(dir, sizeof(dir), m->path);
	*strrchr(dir, '/') = '\0';
	same = !strcmp(text, m->attempt) && !access(dir, W_OK);
	free(text);
	return same;
}

static enum status compare_marks(struct train *t, struct mark *m, struct error *err)
{
	const double mine = sees(m);
	double *all = calloc(t->comm->size, sizeof(*all));
	enum status st = all ? t->comm->ops->gather(t->comm, &mine, sizeof(mine), all, err)
			     : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for the answers of the ranks");

	t->saving.shared = !st;
	for (unsigned r = 0; !st && r < t->comm->size && t->saving.shared; r++) {
		t->saving.shared = all[r] > 0;
		if (!t->saving.shared && run_writes(t))
			log_warn(
				t->job->log, LOG_TOPIC_RUN,
				"%s: rank %u does not see this run directory, so rank 0 writes the "
				"checkpoints alone; if it is on a disk that all nodes share, all ranks write",
				t->dir, r);
	}
	free(all);
	return st;
}

enum status run_saving_open(struct train *t, struct error *err)
{
	struct mark m = {0};
	enum status st = STATUS_OK;

	if (!t->comm)
		return STATUS_OK;
	if (run_writes(t))
		st = leave_mark(t, &m, err);
	st = comm_agree(t->comm, st, err);
	if (!st)
		st = t->comm->ops->share(t->comm, &m, sizeof(m), err);
	if (!st)
		st = compare_marks(t, &m, err);
	if (run_writes(t) && *m.path)
		unlink(m.path);
	return st;
}

/* -- a save -- */

static enum status begin(struct train *t, const char *folder, json_t *state, struct error *err)
{
	const struct checkpoint_part part = {.rank = t->comm->rank,
					     .ranks = t->comm->size,
					     .shard = &t->host_params.shard,
					     .parts = t->parts.ranks ? &t->parts : NULL,
					     .folder = folder};
	struct checkpoint_source source = run_source(t, state);

	source.part = &part;
	return checkpoint_writer_begin(t->writer, &source, t->state.best_step, err);
}

enum status run_save_shared(struct train *t, bool wait, struct error *err)
{
	char *folder = t->saving.folder;
	json_t *state = NULL;
	enum status st = run_save_join(t, true, err);

	if (st)
		return st;
	if (run_writes(t))
		st = run_check_directory(t, err);
	if (!st && run_writes(t))
		st = checkpoint_folder(folder, t->dir, t->state.step, t->saving.attempt, err);
	if (!st && run_writes(t))
		st = run_state_now(t, &state, err);
	st = comm_agree(t->comm, st, err);
	if (!st)
		st = t->comm->ops->share(t->comm, folder, sizeof(t->saving.folder), err);
	if (!st)
		st = host_params_mark(&t->host_params, &t->stepper.back, err);
	if (!st)
		st = begin(t, folder, state, err);
	json_decref(state);
	t->saving.pending = !st;
	return st || !wait ? st : run_save_join(t, true, err);
}

/* The report of this rank as text: of its shard, or {"status","cause","text"} of its error. */
static void write_report(struct train *t, char out[REPORT])
{
	struct error why = {0};
	json_t *report = NULL;
	enum status st = checkpoint_writer_report(t->writer, &report, &why);
	char *text;

	if (st) {
		json_decref(report);
		report = json_pack("{s:i, s:i, s:s}", "status", (int)st, "cause", (int)why.cause, "text",
				   why.text);
	}
	text = json_dumps(report, JSON_COMPACT);
	if (text && strlen(text) < REPORT)
		memcpy(out, text, strlen(text) + 1);
	free(text);
	json_decref(report);
}

/* One of all ranks' reports. BUG: it has none; or the rank's error. Owner: caller. */
static enum status read_report(json_t **out, const char *text, unsigned rank, struct error *err)
{
	const json_t *status;

	*out = json_loads(text, 0, NULL);
	status = json_object_get(*out, "status");
	if (*out && !status)
		return STATUS_OK;
	if (!*out)
		return error_set(err, STATUS_BUG, "rank %u did not say what it wrote", rank);
	return error_set_cause(err, (enum status)json_integer_value(status),
			       (enum cause)json_integer_value(json_object_get(*out, "cause")), "rank %u: %s",
			       rank, json_member_text(*out, "text"));
}

static enum status gather_reports(struct train *t, json_t *list, struct error *err)
{
	char *mine = calloc(1, REPORT), *all = calloc(t->comm->size, REPORT);
	enum status st =
		comm_agree(t->comm,
			   mine && all && list ? STATUS_OK
					       : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
								 "no memory for the reports of all ranks"),
			   err);

	if (!st) {
		write_report(t, mine);
		st = t->comm->ops->gather(t->comm, mine, REPORT, all, err);
	}
	for (unsigned r = 0; !st && r < t->comm->size; r++) {
		json_t *one = NULL;

		all[(size_t)r * REPORT + REPORT - 1] = '\0';
		st = read_report(&one, all + (size_t)r * REPORT, r, err);
		json_array_append_new(list, one ? one : json_null());
	}
	free(mine);
	free(all);
	return st;
}

enum status run_save_join(struct train *t, bool wait, struct error *err)
{
	json_t *reports;
	enum status st;

	if (!t->saving.pending || (!wait && t->saving.done < t->comm->size))
		return STATUS_OK;
	t->saving.pending = false;
	reports = json_array();
	st = gather_reports(t, reports, err);
	if (!st && run_writes(t))
		st = checkpoint_writer_join(t->writer, json_incref(reports), err);
	else if (st && run_writes(t))
		file_remove_tree(t->saving.folder);
	json_decref(reports);
	if (st || !wait)
		return st;
	if (run_writes(t))
		st = checkpoint_writer_wait(t->writer, err);
	return comm_agree(t->comm, st, err);
}

bool run_save_done(const struct train *t)
{
	return t->saving.pending && checkpoint_writer_idle(t->writer);
}
