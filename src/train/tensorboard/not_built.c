/* SPDX-License-Identifier: Apache-2.0 */
/* A build without protobuf-c: there are no events, and opening them says so. */
#include "train/tensorboard/events.h"

enum status events_open(struct events **e, const char *dir, double wall, struct error *err)
{
	(void)wall;
	*e = NULL;
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
			       "%s: no TensorBoard events: this program was built without protobuf-c", dir);
}

enum status events_add(struct events *e, double wall, int64_t step, const struct scalar *scalars,
		       size_t count, struct error *err)
{
	(void)e, (void)wall, (void)step, (void)scalars, (void)count;
	return error_set(err, STATUS_BUG, "events that could not be opened are written");
}

void events_close(struct events **e)
{
	*e = NULL;
}
