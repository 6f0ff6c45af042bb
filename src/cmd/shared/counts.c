/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/counts.h"

#include <stdlib.h>
#include "machine/machine.h"

enum status counts_number(unsigned *out, const char *option, const char *text, unsigned most,
			  struct error *err)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value > most)
		return error_set(err, STATUS_BAD_INPUT, "%s: \"%.40s\" is not a whole number from 0 to %u",
				 option, text, most);
	*out = (unsigned)value;
	return STATUS_OK;
}

enum status counts_of_machine(unsigned *gpus, unsigned *cpus, const char *recording,
			      const struct command_context *c, struct error *err)
{
	static const char *const none[] = {NULL};
	const struct machine_scope scope = {.up_to = LAYER_HOST, .stop = c->stop, .libs = none};
	struct machine *m = NULL;
	enum status st = machine_read_scope(&m, &scope, recording, c->log, err);

	if (st)
		return st;
	*gpus = 0;
	for (unsigned i = 0; i < machine_gpu_count(m); i++)
		*gpus += machine_gpu(m, i)->granted;
	*cpus = machine_cpu(m)->usable;
	machine_free(m);
	return STATUS_OK;
}
