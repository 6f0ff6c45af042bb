/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/single_process.h"
#include <stdlib.h>
#include "team/launcher/place.h"

static const char *from_environment(void *arg, const char *name)
{
	(void)arg;
	return getenv(name);
}

enum status single_process_check(const char *command, struct error *err)
{
	const struct environment env = {.get = from_environment};
	const struct team_place_options told = {
		.master = "127.0.0.1"}; /* the address of rank 0 does not matter here */
	struct team_place p;
	enum status st = team_place(&p, &told, &env, err);

	if (st || p.size < 2)
		return st;
	return error_set(
		err, STATUS_BAD_INPUT,
		"%s does not support several ranks yet, but this is rank %u of %u, started by %s: start one process, "
		"or unset the launcher's variables if there is only one",
		command, p.rank, p.size, p.from);
}
