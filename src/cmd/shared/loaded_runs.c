/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/loaded_runs.h"
#include <stdlib.h>
#include "cmd/shared/judged.h"

struct loaded_run {
	struct expectations *expectations;
	struct record record;
	struct judgements judged;
};

static enum status load(struct loaded_run *l, const char *dir, const char *expectations, struct error *err)
{
	enum status status = record_read_run(&l->record, dir, err);

	if (status ==
	    STATUS_UNAVAILABLE) /* a folder that the command names does not exist or cannot be read */
		status = err->status = STATUS_BAD_INPUT;
	if (!status)
		status = judged_expectations(&l->expectations, &l->record, expectations, err);
	return status ? status : judge_record(&l->judged, &l->record, l->expectations, NULL, err);
}

enum status loaded_runs_read(struct loaded_runs *l, const struct opt_words *dirs, const char *expectations,
			     struct error *err)
{
	enum status st = STATUS_OK;

	*l = (struct loaded_runs){0};
	if (dirs->count > LOADED_RUNS_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%zu runs given; at most %d are accepted",
				 dirs->count, LOADED_RUNS_MAX);
	l->own = calloc(dirs->count + 1, sizeof(*l->own));
	l->run = calloc(dirs->count + 1, sizeof(*l->run));
	if (!l->own || !l->run)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "out of memory for %zu runs",
				       dirs->count);
	l->owned = dirs->count;
	for (size_t i = 0; i < dirs->count && !st; i++) {
		st = load(&l->own[i], dirs->word[i], expectations, err);
		l->run[l->count++] = (struct compare_run){
			.name = dirs->word[i], .record = &l->own[i].record, .judged = &l->own[i].judged};
	}
	return st;
}

void loaded_runs_release(struct loaded_runs *l)
{
	for (size_t i = 0; i < l->owned; i++) {
		judgements_release(&l->own[i].judged);
		record_release(&l->own[i].record);
		expectations_free(l->own[i].expectations);
	}
	free(l->own);
	free(l->run);
	*l = (struct loaded_runs){0};
}
