/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces events.c in a build without protobuf-c. events_open fails with a message. */
#include "train/tensorboard/events.h"

enum status events_open(struct events **e, const char *dir, double wall, struct error *err)
{
	(void)wall;
	*e = NULL;
	return error_set_cause(
		err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
		"%s: cannot write TensorBoard events, because this program was built without protobuf-c",
		dir);
}

enum status events_add(struct events *e, double wall, int64_t step, const struct scalar *scalars,
		       size_t count, struct error *err)
{
	(void)e, (void)wall, (void)step, (void)scalars, (void)count;
	return error_set(err, STATUS_BUG, "events were written without being opened");
}

void events_close(struct events **e)
{
	*e = NULL;
}
