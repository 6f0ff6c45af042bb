/* SPDX-License-Identifier: Apache-2.0 */
/* assay __worker: the process in which cases run. A run's supervisor starts it. */
#include "cmd/command.h"
#include "probe/registry.h"
#include "run/run.h"
#include "vendor/cuda.h"

static int run(const struct command_context *c, int argc, char **argv)
{
	(void)c, (void)argc, (void)argv;
	cuda_keep_no_cache();
	return worker_main(probe_list);
}

const struct command command_worker = {
	.name = "__worker",
	.summary = "run the cases that descriptor 3 names",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
