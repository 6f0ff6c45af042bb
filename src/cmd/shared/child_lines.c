/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/child_lines.h"
#include "core/text/text.h"

static const char *member(const json_t *line, const char *name)
{
	return json_string_value(json_object_get(line, name));
}

void child_end_take(struct child_end *e, const json_t *line)
{
	e->said = true;
	if (!status_from_name(member(line, "status"), &e->status))
		e->status = STATUS_BUG;
	if (!cause_from_name(member(line, "cause"), &e->cause))
		e->cause = CAUSE_NONE;
	text_copy(e->text, sizeof(e->text), member(line, "text"));
	json_decref(e->values);
	e->values = json_incref(json_object_get(line, "values"));
}

void child_end_release(struct child_end *e)
{
	json_decref(e->values);
	*e = (struct child_end){0};
}

void child_log_take(const struct log *log, const json_t *line)
{
	const int level = (int)json_integer_value(json_object_get(line, "level"));
	const char *text = member(line, "text");

	log_line(log, level >= LOG_DEBUG && level <= LOG_ERROR ? (enum log_level)level : LOG_WARN,
		 LOG_TOPIC_RUN, "%s", text ? text : "");
}
