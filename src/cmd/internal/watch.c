/* SPDX-License-Identifier: Apache-2.0 */
/* assay __watch node|gpu|host|ports|runs|names: writes the stream of this machine, or the part of one source
 * (docs/explanation/design/watch.md). `top` and `exporter` start it, here or over ssh. */
#include <string.h>
#include "cmd/command.h"
#include "watch/read/reader.h"

struct watch_opts {
	const char *what;
	double interval, slow, limit;
	const char *sys, *proc, *kmsg, *runs, *skip;
	bool lifeline, gpus_only;
};

static const char *const words[] = {"node", "gpu", "host", "ports", "runs", "names", NULL};

static const struct opt rows[] = {
	OPT_ROW(struct watch_opts, what, .name = "what", .positional = true, .preset = "node",
		.shown = "PART", .choices = words, .help = "the whole stream, or the part of one source"),
	OPT_ROW(struct watch_opts, interval, .name = "interval", .preset = "1s", .unit = "s", .min = 0.05,
		.max = 3600, .help = "time between two readings"),
	OPT_ROW(struct watch_opts, slow, .name = "slow", .preset = "5s", .unit = "s", .min = 0.05,
		.max = 86400, .help = "time between two readings of values that change seldom"),
	OPT_ROW(struct watch_opts, limit, .name = "limit", .preset = "0s", .unit = "s", .min = 0, .max = 3600,
		.help = "end a source that does not answer for so long (0: each source's own limit)"),
	OPT_ROW(struct watch_opts, sys, .name = "sys", .preset = "/sys", .shown = "DIR",
		.help = "read this folder instead of /sys"),
	OPT_ROW(struct watch_opts, proc, .name = "proc", .preset = "/proc", .shown = "DIR",
		.help = "read this folder instead of /proc"),
	OPT_ROW(struct watch_opts, kmsg, .name = "kmsg", .preset = "/dev/kmsg", .shown = "FILE",
		.help = "read the kernel log from this file"),
	OPT_ROW(struct watch_opts, runs, .name = "runs", .shown = "DIR",
		.help = "folder with the runs whose last checks are shown (default: assay-runs)"),
	OPT_ROW(struct watch_opts, skip, .name = "skip", .preset = "none", .shown = "PCI",
		.help = "do not touch these GPUs (PCI addresses with commas)"),
	OPT_ROW(struct watch_opts, gpus_only, .name = "gpus-only",
		.help = "read GPUs with their links and processes, and nothing else"),
	OPT_ROW(struct watch_opts, lifeline, .name = "lifeline",
		.help = "end when stdin ends, or when nothing arrives on it for 20 s"),
};

static int run(const struct command_context *c, const void *opts)
{
	static int (*const parts[])(const struct reader_spec *) = {reader_node,	 reader_gpu,  reader_host,
								   reader_ports, reader_runs, reader_names};
	const struct watch_opts *o = opts;
	const struct reader_spec spec = {.interval = o->interval,
					 .slow = o->slow,
					 .limit = o->limit,
					 .sys = o->sys,
					 .proc = o->proc,
					 .kmsg = o->kmsg,
					 .runs = o->runs,
					 .skip = o->skip,
					 .lifeline = o->lifeline,
					 .gpus_only = o->gpus_only,
					 .stop = c->stop};

	for (size_t i = 0; words[i]; i++)
		if (!strcmp(o->what, words[i]))
			return parts[i](&spec);
	return EXIT_USAGE;
}

const struct command command_watch = {
	.name = "__watch",
	.summary = "write the stream of this machine's values",
	.opts = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct watch_opts)},
	.hidden = true,
	.run = run,
};
