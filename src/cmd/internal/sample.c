/* SPDX-License-Identifier: Apache-2.0 */
/* assay __sample [host] PCI..: the telemetry sampler. Runs start it. */
#include "cmd/command.h"
#include "telemetry/telemetry.h"

static int run(const struct command_context *c, int argc, char **argv)
{
	return sampler_main(argc, argv, c->stop, c->log);
}

const struct command command_sample = {
	.name = "__sample",
	.summary = "write telemetry lines to descriptor 3",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
