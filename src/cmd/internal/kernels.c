/* SPDX-License-Identifier: Apache-2.0 */
/* assay __kernels [time]: reports which kernels OpenBLAS chose and how fast they are. It is a separate
 * process because the library may crash it. */
#include "cmd/command.h"
#include "model/cpu/openblas_kernels.h"

static int run(const struct command_context *c, int argc, char **argv)
{
	(void)c;
	return cpu_kernels_main(argc > 0 && !strcmp(argv[0], "time"));
}

const struct command command_kernels = {
	.name = "__kernels",
	.summary = "print the kernels that OpenBLAS chose",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
