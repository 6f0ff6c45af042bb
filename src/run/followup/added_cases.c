/* SPDX-License-Identifier: Apache-2.0 */
/* Cases beyond the plan: they continue its numbering, and the journal records them as `extend`. */
#include <errno.h>
#include "machine/machine.h"
#include "run/probe.h"
#include "run/supervisor/supervisor.h"

/* Extends the array with zeros; false: out of memory. */
static bool grow(void *array, size_t size, size_t from, size_t to)
{
	void **at = array;
	char *grown = realloc(*at, to * size);

	if (!grown)
		return false;
	memset(grown + from * size, 0, (to - from) * size);
	*at = grown;
	return true;
}

enum status run_reserve(struct run *r, size_t cases, struct error *err)
{
	size_t room = cases + cases / 2 + 16;

	if (cases <= r->room)
		return STATUS_OK;
	if (!grow(&r->attempt, sizeof(*r->attempt), r->room, room) ||
	    !grow(&r->done, sizeof(*r->done), r->room, room) ||
	    !grow(&r->note, sizeof(*r->note), r->room, room))
		return error_errno(err, ENOMEM, "%s: %zu cases", r->o->dir, cases);
	r->room = room;
	return STATUS_OK;
}

bool run_extend_report(struct run *r, struct step *step, const char *mark, json_t *marks)
{
	json_t *cases = json_array();

	if (!r->status)
		r->status = run_reserve(r, r->next_id + step->count, r->err);
	if (r->status) {
		json_decref(marks);
		json_decref(cases);
		return false;
	}
	for (size_t i = 0; i < step->count; i++) {
		json_t *body;

		step->cases[i].id = r->next_id++;
		step->cases[i].line = 0; /* the other ranks of a team do not wait for an added case */
		body = case_json(&step->cases[i], r->machine);
		if (body)
			json_object_set(body, mark, json_array_get(marks, i));
		json_array_append_new(cases, body);
	}
	json_decref(marks);
	run_journal(r, JOURNAL_EXTEND, json_pack("{s:[{s:b, s:o}]}", "steps", "together", 0, "cases", cases));
	r->out->cases += step->count;
	return !run_stopping(r) && !r->status;
}

bool run_extend(struct run *r, struct step *step, const char *mark, json_t *marks)
{
	if (!run_extend_report(r, step, mark, marks))
		return false;
	worker_pool_step(r, step);
	return !run_stopping(r) && !r->status;
}
