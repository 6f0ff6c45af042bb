/* SPDX-License-Identifier: Apache-2.0 */
/* `assay __facts LAYER`: one vendor layer's raw readings as JSON on stdout, in a process that may hang or
 * crash. Behind `software` the libraries wanted may be named. */
#include "cmd/command.h"
#include "machine/raw.h"
#include "vendor/cuda.h"

static json_t *read_layer(int argc, char **argv)
{
	const char *layer = argc ? argv[0] : "";

	if (!strcmp(layer, "software"))
		return raw_software(argc > 1 ? (const char *const *)argv + 1 : NULL);
	if (argc != 1)
		return NULL;
	return !strcmp(layer, "nvml") ? raw_nvml() : !strcmp(layer, "cuda") ? raw_cuda() : NULL;
}

static int run_raw(const struct command_context *c, int argc, char **argv)
{
	json_t *raw;
	int code;

	(void)c;
	cuda_keep_no_cache();
	raw = read_layer(argc, argv);
	if (!raw)
		return EXIT_USAGE;
	code = json_dumpf(raw, stdout, JSON_COMPACT) || fflush(stdout) ? EXIT_FAILED : EXIT_PASS;
	json_decref(raw);
	return code;
}

const struct command command_facts = {
	.name = "__facts",
	.summary = "raw readings of one vendor layer: nvml, cuda or software",
	.hidden = true,
	.raw = true,
	.run_raw = run_raw,
};
