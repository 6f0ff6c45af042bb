/* SPDX-License-Identifier: Apache-2.0 */
/* assay __sample [host] PCI..: the telemetry sampler. Runs start it. assay __sample all: the host and all
 * GPUs that are granted here; the load test starts it over ssh on the server's node. It first answers each
 * line "clock" of stdin with the time of its clock, until another line or the end. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cmd/command.h"
#include "core/clock.h"
#include "machine/machine.h"
#include "telemetry/telemetry.h"

enum { GPUS_MOST = 64, OUTPUT_FD = 3 };

static void tell_clock(void)
{
	char line[16];

	while (fgets(line, sizeof(line), stdin) && !strcmp(line, "clock\n"))
		dprintf(OUTPUT_FD, "{\"clock\":%" PRIu64 "}\n", clock_now_ns(clock_monotonic()));
}

static int sample_all(const struct command_context *c)
{
	static char host[] = "host";
	const struct machine_scope scope = {.up_to = LAYER_NVML, .stop = c->stop};
	struct machine *m = NULL;
	char *words[GPUS_MOST + 1] = {host};
	struct error err = {0};
	int count = 1, code;

	tell_clock();
	if (machine_read_scope(&m, &scope, NULL, c->log, &err))
		log_warn(c->log, LOG_TOPIC_RUN, "no telemetry of GPUs: %s", err.text);
	for (unsigned i = 0; m && i < machine_gpu_count(m) && count <= GPUS_MOST; i++)
		words[count++] = (char *)machine_gpu(m, i)->pci;
	code = sampler_main(count, words, c->stop, c->log);
	machine_free(m);
	return code;
}

static int run(const struct command_context *c, int argc, char **argv)
{
	if (argc == 1 && !strcmp(argv[0], "all"))
		return sample_all(c);
	return sampler_main(argc, argv, c->stop, c->log);
}

const struct command command_sample = {
	.name = "__sample",
	.summary = "write telemetry lines to descriptor 3",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
