/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by `check` and `probe`: plan, run, judge, report. */
#ifndef CMD_RUNNING_RUNNING_H
#define CMD_RUNNING_RUNNING_H
#include "cmd/command.h"
#include "cmd/shared/show.h"
#include "report/report.h"
#include "run/plan/case.h"

struct running_opts {
	const char *target, *out, *resume, *machine, *expect, *site, *expectations;
	const char *node, *interface, *team_secret, *columns;
	double seconds, search_seconds, price, join;
	uint64_t seed, rounds;
	uint32_t format;
	bool json, plan, wait, beside, sample, real_names, isolate;
};

/* The options that say how launched ranks join. */
/* clang-format off */
#define RUNNING_TEAM_ROWS(type) \
	OPT_ROW(type, running.node, .name = "node", .shown = "NAME", .help = "with several ranks: name of this node (default: the host name)"), \
	OPT_ROW(type, running.interface, .name = "interface", .shown = "NAME|ADDRESS", .help = "with several ranks: network interface for their connections"), \
	OPT_ROW(type, running.team_secret, .name = "team-secret", .shown = "FILE", .help = "with several ranks: file (mode 0600) with their shared secret"), \
	OPT_ROW(type, running.join, .name = "join", .preset = "60s", .unit = "s", .min = 0.1, .max = 3600, \
		.help = "with several ranks: time until all must have joined")
/* clang-format on */
/* Option rows with the same name in every command. `type` contains a struct running_opts named `running`. */
/* clang-format off */
#define RUNNING_ROWS(type)                                                                                            \
	OPT_ROW(type, running.target, .name = "target", .also = "gpus gpu gpu-id device devices device-id cuda", .shown = "cpu|cpu-each-numa|gpu|gpuN|pair|pair-once|gpuN>gpuM|node|node-doubling|node:LIST|team|team-doubling|team:LIST|all", .help = "run only the cases on this target. cpu: all CPUs; cpu-each-numa: each NUMA node; gpu: each " \
		"GPU; gpuN: GPU number N; pair: each pair of GPUs in both directions; pair-once: in one " \
		"direction; gpuN>gpuM: one pair; node: all GPUs together; node-doubling: groups of 2, 4, 8 " \
		".. GPUs; node:LIST: these GPUs; team: all ranks; team-doubling: the ranks of 1, 2, 4 .. " \
		"nodes; team:LIST: these ranks; all: everything"), \
	OPT_ROW(type, running.out, .name = "out", .also = "output output-dir o log-dir", .shown = "DIR", .help = "run directory (default: assay-runs/DATE-NAME)"),   \
	OPT_ROW(type, running.seconds, .name = "seconds", .also = "duration time runtime", .preset = "0", .unit = "s", .min = 0, .max = 1e7,            \
		.help = "length of the measured windows; 0: the suite's or the probe's own value"),                               \
	OPT_ROW(type, running.rounds, .name = "rounds", .also = "repeat repeats iterations runs", .preset = "1", .min = 1, .max = 1000,                             \
		.help = "repeat all timed cases N times; rounds that differ by 5 % are reported"),             \
	OPT_ROW(type, running.search_seconds, .name = "search-seconds", .preset = "0", .unit = "s", .min = 0, .max = 1e6, \
		.help = "time for comparing a case's variants (search=top, exhaustive); 0: half of the case's time limit"),         \
	OPT_ROW(type, running.seed, .name = "seed", .also = "random-seed", .preset = "1", .help = "seed of all random data"),                      \
	OPT_ROW(type, running.resume, .name = "resume", .also = "continue restart", .shown = "DIR", .help = "continue the interrupted run in DIR, with its original options"),                        \
	OPT_ROW(type, running.plan, .name = "plan", .also = "dry-run", .help = "show the cases with their time, power and disk space; run nothing"), \
	OPT_ROW(type, running.machine, .name = "machine", .also = "recording", .shown = "DIR",                                              \
		.help = "judge the readings of a recorded machine (assay info --record); measure nothing"),                                    \
	OPT_ROW(type, running.expect, .name = "expect", .shown = "SKU:N", .help = "the GPUs that you ordered, as type and number, for example h100-sxm:8. The run fails if the " \
		"machine has others"),      \
	OPT_ROW(type, running.site, .name = "site", .shown = "FILE", .help = "YAML file with the agreed properties of the machine"), \
	OPT_ROW(type, running.expectations, .name = "expectations", .shown = "DIR",                                    \
		.help = "judge by these expectations instead of the built-in ones; they are saved with the run"),  \
	OPT_ROW(type, running.wait, .name = "wait", .help = "wait until the GPUs are free"),                           \
	OPT_ROW(type, running.beside, .name = "beside",                                                                \
		.help = "measure even if other programs use the GPUs; such figures get the verdict untrusted"),                                 \
	OPT_ROW(type, running.price, .name = "price", .preset = "0", .min = 0, .max = 1e6,                             \
		.help = "price of the machine per hour, saved with the run"),                                                 \
	OPT_ROW(type, running.sample, .name = "telemetry", .preset = "true", .help = "sample power, clocks and temperatures"), \
	OPT_ROW(type, running.isolate, .name = "isolate", .preset = "true",                                              \
		.help = "if a case of several GPUs is slow or wrong, repeat it in smaller groups until the faulty " \
			"GPU is found; for a slow GEMM on the CPU, try other kernels"),                                                   \
	RUNNING_TEAM_ROWS(type), \
	OPT_ROW(type, running.real_names, .name = "real-names",                                                          \
		.help = "write real serial numbers, addresses and host names into journal and reports, not pseudonyms"),     \
	OPT_ROW(type, running.format, .name = "format", .also = "output-format", .preset = "text", .choices = report_formats,                  \
		.help = "format of the report on stdout"),                                                                 \
	OPT_ROW(type, running.columns, .name = "columns", .shown = "LIST", .help = SHOW_COLUMNS_HELP), \
	OPT_ROW(type, running.json, .name = "json", .help = "the same as --format json")
/* clang-format on */

/* Runs a suite with the given options and returns the program's exit code. The report goes to stdout. */
int running_do(const struct command_context *c, const struct suite *s, const struct running_opts *o);
#endif
