/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/sample.h"

static const struct telemetry_signal signals[] = {
#define X(name_, unit_, kind_, period_, help_)                                                               \
	[TELEMETRY_##name_] = {                                                                              \
		.name = #name_, .unit = unit_, .help = help_, .kind = SIGNAL_##kind_, .period_ms = period_},
	TELEMETRY_SIGNALS(X)
#undef X
};

const struct telemetry_signal *telemetry_signal_at(enum telemetry_signal_id id)
{
	return &signals[id];
}
