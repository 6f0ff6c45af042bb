/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assay __facts LAYER: prints the raw readings of one vendor layer as JSON on stdout, in a separate process
 * because a driver may hang or crash it. After `software`, the names of the wanted libraries may follow.
 *
 * Five layers serve machine/watch/watch.h. `nvlink MS` and `ib MS [SYS]` print one line every MS milliseconds
 * until nobody reads. `counters PCI..`, `alive PCI` and `gpus` print once.
 */
#include <poll.h>
#include <sys/prctl.h>
#include "cmd/command.h"
#include "core/clock.h"
#include "machine/raw/raw.h"
#include "machine/watch/watch.h"
#include "vendor/cuda.h"

static json_t *read_layer(int argc, char **argv)
{
	const char *layer = argc ? argv[0] : "";

	if (!strcmp(layer, "counters"))
		return watch_counters((const char *const *)argv + 1, (size_t)argc - 1);
	if (!strcmp(layer, "gpus") && argc == 1)
		return watch_gpus();
	if (!strcmp(layer, "alive") && argc == 2)
		return watch_alive(argv[1]);
	if (!strcmp(layer, "software"))
		return raw_software(argc > 1 ? (const char *const *)argv + 1 : NULL);
	if (argc != 1)
		return NULL;
	return !strcmp(layer, "nvml") ? raw_nvml() : !strcmp(layer, "cuda") ? raw_cuda() : NULL;
}

/* Sleeps until a time. False if nobody reads any more or a stop was requested. */
static bool still_heard(uint64_t until_ns, const volatile sig_atomic_t *stop)
{
	struct pollfd out = {.fd = 1};
	uint64_t now;

	while (!*stop && (now = clock_now_ns(clock_monotonic())) < until_ns) {
		uint64_t left = (until_ns - now) / 1000000 + 1;

		if (poll(&out, 1, (int)(left < 100 ? left : 100)) > 0 && (out.revents & (POLLERR | POLLHUP)))
			return false;
	}
	return !*stop;
}

static int watch(bool nvlink, unsigned long ms, const char *sys, const volatile sig_atomic_t *stop)
{
	struct watch_nvlink *w = nvlink ? watch_nvlink_open() : NULL;
	uint64_t next = clock_now_ns(clock_monotonic());
	int code = EXIT_PASS;

	if (nvlink && !w)
		return EXIT_FAILED;
	do {
		json_t *line = nvlink ? watch_nvlink_read(w) : watch_ib_read(sys);

		if (json_dumpf(line, stdout, JSON_COMPACT) || fputc('\n', stdout) < 0 || fflush(stdout))
			code = EXIT_FAILED;
		json_decref(line);
		next += ms * 1000000;
	} while (!code && ms && still_heard(next, stop));
	watch_nvlink_close(w);
	return code;
}

static int run_raw(const struct command_context *c, int argc, char **argv)
{
	json_t *raw;
	int code;

	bool nvlink = argc == 2 && !strcmp(argv[0], "nvlink");

	prctl(PR_SET_NAME, WATCH_HELPER_NAME);
	if (nvlink || (argc >= 2 && argc <= 3 && !strcmp(argv[0], "ib")))
		return watch(nvlink, strtoul(argv[1], NULL, 10), argc > 2 ? argv[2] : "/sys", c->stop);
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
