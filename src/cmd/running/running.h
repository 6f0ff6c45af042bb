/* SPDX-License-Identifier: Apache-2.0 */
/* What `check` and `probe` share: plan, run, judge, report. */
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

/* Those of them that say how launched ranks meet. */
/* clang-format off */
#define RUNNING_TEAM_ROWS(type) \
	OPT_ROW(type, running.node, .name = "node", .shown = "NAME", .help = "in a team: what this node is called, else the host's name"), \
	OPT_ROW(type, running.interface, .name = "interface", .shown = "NAME|ADDRESS", .help = "in a team: by which the ranks talk"), \
	OPT_ROW(type, running.team_secret, .name = "team-secret", .shown = "FILE", .help = "in a team: file (0600) with what its ranks alone know"), \
	OPT_ROW(type, running.join, .name = "join", .preset = "60s", .unit = "s", .min = 0.1, .max = 3600, \
		.help = "in a team: until all ranks have come")
/* clang-format on */
/* Rows for the options that are the same word everywhere; `type` holds a struct running_opts named `running`.
 */
/* clang-format off */
#define RUNNING_ROWS(type)                                                                                            \
	OPT_ROW(type, running.target, .name = "target", .also = "gpus gpu gpu-id device devices device-id cuda", .shown = "cpu|cpu-each-numa|gpu|gpuN|pair|pair-once|gpuN>gpuM|node|node-doubling|node:LIST|team|team-doubling|team:LIST|all", .help = "run only the cases on it"), \
	OPT_ROW(type, running.out, .name = "out", .also = "output output-dir o log-dir", .shown = "DIR", .help = "run directory; else assay-runs/DATE-NAME"),   \
	OPT_ROW(type, running.seconds, .name = "seconds", .also = "duration time runtime", .preset = "0", .unit = "s", .min = 0, .max = 1e7,            \
		.help = "length of the measured windows; 0: as the suite or METHODS say"),                               \
	OPT_ROW(type, running.rounds, .name = "rounds", .also = "repeat repeats iterations runs", .preset = "1", .min = 1, .max = 1000,                             \
		.help = "everything that is timed so many times over; rounds that differ by 5 % are told"),             \
	OPT_ROW(type, running.search_seconds, .name = "search-seconds", .preset = "0", .unit = "s", .min = 0, .max = 1e6, \
		.help = "budget for timing a case's variants (search=top, exhaustive); 0: half of its limit"),         \
	OPT_ROW(type, running.seed, .name = "seed", .also = "random-seed", .preset = "1", .help = "of all random data"),                      \
	OPT_ROW(type, running.resume, .name = "resume", .also = "continue restart", .shown = "DIR", .help = "go on with the run in DIR, as it was begun"),                        \
	OPT_ROW(type, running.plan, .name = "plan", .also = "dry-run", .help = "show what would run, with time, watts and bytes; run nothing"), \
	OPT_ROW(type, running.machine, .name = "machine", .also = "recording", .shown = "DIR",                                              \
		.help = "a recorded machine: judges its readings, measures nothing"),                                    \
	OPT_ROW(type, running.expect, .name = "expect", .shown = "SKU:N", .help = "what was bought: h100-sxm:8"),      \
	OPT_ROW(type, running.site, .name = "site", .shown = "FILE", .help = "what the operator states of this site"), \
	OPT_ROW(type, running.expectations, .name = "expectations", .shown = "DIR",                                    \
		.help = "expectations instead of the built-in ones; kept with the run, which they judge from then on"),  \
	OPT_ROW(type, running.wait, .name = "wait", .help = "wait until the GPUs are free"),                           \
	OPT_ROW(type, running.beside, .name = "beside",                                                                \
		.help = "run although others use the GPUs; such figures are untrusted"),                                 \
	OPT_ROW(type, running.price, .name = "price", .preset = "0", .min = 0, .max = 1e6,                             \
		.help = "price of the machine an hour, for the record"),                                                 \
	OPT_ROW(type, running.sample, .name = "telemetry", .preset = "true", .help = "sample power, clocks, temperatures"), \
	OPT_ROW(type, running.isolate, .name = "isolate", .preset = "true",                                              \
		.help = "follow a case of several GPUs that is slow or wrong until the bad one is named; try other "     \
			"kernels for a slow matrix product on the CPU"),                                         \
	RUNNING_TEAM_ROWS(type), \
	OPT_ROW(type, running.real_names, .name = "real-names",                                                          \
		.help = "serials, addresses and host names as they are in journal and reports, not as pseudonyms"),     \
	OPT_ROW(type, running.format, .name = "format", .also = "output-format", .preset = "text", .choices = report_formats,                  \
		.help = "form of the report on stdout"),                                                                 \
	OPT_ROW(type, running.columns, .name = "columns", .shown = "LIST", .help = SHOW_COLUMNS_HELP), \
	OPT_ROW(type, running.json, .name = "json", .help = "the same as --format json")
/* clang-format on */

/* Runs the suite as asked; returns the program's exit code. Results go to stdout. */
int running_do(const struct command_context *c, const struct suite *s, const struct running_opts *o);
/* Logs the error; the exit code it asks for. */
int running_complain(const struct command_context *c, const struct error *err);
#endif
