/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/shared/candidates.h"
#include "core/clock.h"

enum status candidates_continue(void *arg, bool *enough, struct error *err)
{
	const struct candidates_listing *l = arg;
	double spent_s = (double)(clock_now_ns(l->bench->clock) - l->t0_ns) * 1e-9;

	if (l->bench->stop && *l->bench->stop)
		return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request");
	*enough = l->bench->search_s > 0 && spent_s > 0.5 * l->bench->search_s;
	return STATUS_OK;
}
