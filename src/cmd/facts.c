/* SPDX-License-Identifier: Apache-2.0 */
/* `assay __facts LAYER`: one vendor layer's raw readings as JSON on stdout, in a process that may hang or
 * crash. */
#include "cmd/command.h"
#include "machine/raw.h"

static int run_raw(const struct command_context *c, int argc, char **argv)
{
	static const struct {
		const char *name;
		json_t *(*read)(void);
	} layers[] = {{"nvml", raw_nvml}, {"cuda", raw_cuda}, {"software", raw_software}};
	json_t *raw = NULL;
	int code;

	(void)c;
	for (size_t i = 0; argc == 1 && i < sizeof(layers) / sizeof(layers[0]); i++) {
		if (!strcmp(argv[0], layers[i].name))
			raw = layers[i].read();
	}
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
