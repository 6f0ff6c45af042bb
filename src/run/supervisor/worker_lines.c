/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a worker, one per line: events for the journal, and the end of its case. */
#include "run/supervisor/worker_pool.h"

/* Handles an event. False: it is invalid, or of another case. */
static bool on_line(struct worker *w, const char *type, json_t *body)
{
	const json_t *id = json_object_get(body, "case");
	struct run *r = w->run;
	enum journal_type journal;

	if (!strcmp(type, "log")) {
		log_line(r->o->log, (enum log_level)(json_integer_value(json_object_get(body, "level")) & 3),
			 LOG_TOPIC_RUN, "%.400s", json_string_value(json_object_get(body, "text")));
		return true;
	}
	if (!strcmp(type, "listen")) {
		w->port = (uint16_t)json_integer_value(json_object_get(body, "port"));
		w->said_port = true;
		return true;
	}
	if (!w->c || !json_is_integer(id) || json_integer_value(id) != (json_int_t)w->c->id)
		return false;
	if (!strcmp(type, "at")) {
		const char *phase = json_string_value(json_object_get(body, "phase"));

		text_copy(w->phase, sizeof(w->phase), phase ? phase : "");
		if (!strcmp(w->phase, "burst") || !strcmp(w->phase, "sustained"))
			telemetry_reader_begin(r);
		run_progress(r, w->c, w->phase);
		return true;
	}
	if (!strcmp(type, "ready")) {
		w->ready = true;
		return true;
	}
	if (!journal_type_from_name(type, &journal) ||
	    (journal != JOURNAL_PHASE && journal != JOURNAL_SAMPLES && journal != JOURNAL_RESULT))
		return false;
	if (journal == JOURNAL_PHASE) {
		const char *phase = json_string_value(json_object_get(body, "phase"));

		if (phase && (!strcmp(phase, "burst") || !strcmp(phase, "sustained")))
			telemetry_reader_want(r, w->c, phase,
					      (uint64_t)json_integer_value(json_object_get(body, "t0")),
					      (uint64_t)json_integer_value(json_object_get(body, "t1")));
	}
	if (journal == JOURNAL_RESULT) {
		const char *phase = json_string_value(json_object_get(body, "phase"));

		repeat_disturbed_note(r, w->c, phase ? phase : "", json_object_get(body, "values"));
		case_outcome_result(&r->note[w->c->id], w->c->work.limit ? w->c->work.limit : "",
				    phase ? phase : "", json_object_get(body, "values"));
	}
	run_journal(r, journal, json_incref(body));
	return true;
}

static bool on_end(struct worker *w, const json_t *body)
{
	const json_t *id = json_object_get(body, "case");
	const char *text = json_string_value(json_object_get(body, "text"));
	const char *place = json_string_value(json_object_get(body, "place"));
	const char *name = json_string_value(json_object_get(body, "status"));
	const char *why = json_string_value(json_object_get(body, "cause"));
	bool on_gpu = w->c && w->c->target.gpu_count && (w->c->target.kind != TARGET_NODE || w->c->engine);
	enum status status;
	enum cause cause;

	if (!w->c || !json_is_integer(id) || json_integer_value(id) != (json_int_t)w->c->id || !name ||
	    !why || !status_from_name(name, &status) || !cause_from_name(why, &cause))
		return false;
	if (status == STATUS_LOST) {
		worker_pool_quarantine(w->run, w->c, LOST_GONE);
		w->leaves = true;
	}
	if (w->forced == ENDING_DONE || (status != STATUS_CANCELLED && w->forced == ENDING_CANCELLED))
		run_end(w->run, w->c, ENDING_DONE, status, cause, text ? text : "", place ? place : "");
	else if (w->forced == ENDING_CANCELLED)
		run_end(w->run, w->c, ENDING_CANCELLED, STATUS_CANCELLED, w->forced_cause, w->forced_text,
			"");
	else
		worker_ended_by_force(w->run, w, "it ended on TERM");
	w->c = NULL;
	w->ended_case = true;
	/* After TERM the worker exits after its case. After a failed device call its context may be unusable.
	 */
	w->leaves = w->leaves || w->forced != ENDING_DONE || (status == STATUS_VENDOR && on_gpu);
	return true;
}

bool worker_line(void *arg, const char *line, size_t size)
{
	struct worker *w = arg;
	json_t *body = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL),
	       *name = json_object_get(body, "type");
	char type[16] = "";
	bool ours = false;

	if (json_is_string(name) && json_string_length(name) < sizeof(type)) {
		text_copy(type, sizeof(type), json_string_value(name));
		json_object_del(body, "type");
		ours = !strcmp(type, "end") ? on_end(w, body) : on_line(w, type, body);
	}
	json_decref(body);
	w->garbled = !ours;
	return ours;
}
