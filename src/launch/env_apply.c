/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rows for a machine and applies them to this process's environment. */
#include <stdlib.h>
#include "launch/env.h"

enum status env_read(struct env_rows *rows, const struct env_setting *w, const char *recording,
		     char label[160], const volatile sig_atomic_t *stop, const struct log *log,
		     struct error *err)
{
	static const char *const none[] = {NULL}, *const nccl[] = {"nccl", NULL};
	struct machine_scope scope = {.up_to = LAYER_HOST, .stop = stop, .libs = none};
	struct machine *m = NULL;
	enum status st = machine_read_scope(&m, &scope, recording, log, err);

	if (!st && env_wants_nccl(m, w)) {
		machine_free(m);
		scope.libs = nccl;
		st = machine_read_scope(&m, &scope, recording, log, err);
	}
	if (st)
		return st;
	env_derive(rows, m, w);
	if (label)
		text_copy(label, 160,
			  machine_is_live(m)  ? "this machine"
			  : *machine_label(m) ? machine_label(m)
					      : recording);
	machine_free(m);
	return STATUS_OK;
}

void env_apply(const struct env_rows *rows, const struct log *log)
{
	struct text line = {0};

	for (size_t i = 0; i < rows->count; i++) {
		const struct env_row *r = &rows->row[i];

		if (r->kind == ENV_SET)
			setenv(r->name, r->value, 1);
		if (r->kind != ENV_SET && r->kind != ENV_WARNING)
			continue;
		env_explain(&line, r);
		if (r->kind == ENV_WARNING)
			log_warn(log, LOG_TOPIC_RUN, "%s", text_str(&line));
		else
			log_info(log, LOG_TOPIC_RUN, "%s", text_str(&line));
		text_release(&line);
	}
}
