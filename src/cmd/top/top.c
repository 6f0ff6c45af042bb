/* SPDX-License-Identifier: Apache-2.0 */
/* assay top: chooses the way to show. */
#include "cmd/top/top.h"
#include <stdlib.h>
#include <string.h>
#include "cmd/shared/single_process.h"

static const char *const words[] = {"nccl", "nvlink", "ib", "links", NULL};

static const struct opt opts[] = {
	OPT_ROW(struct top_opts, what, .name = "what", .positional = true, .shown = "VIEW", .choices = words,
		.help = "show only NCCL settings, only NVLinks, only InfiniBand and RoCE ports, or all three (links)"),
	OPT_ROW(struct top_opts, hosts, .name = "hosts", .also = "host nodes H", .shown = "HOST,..",
		.help = "show these machines over ssh; each needs assay and a key of yours"),
	OPT_ROW(struct top_opts, hosts_file, .name = "hosts-file", .also = "hostfile", .shown = "FILE",
		.help = "show the machines of this file, which has one host per line"),
	OPT_ROW(struct top_opts, ssh_config, .name = "ssh-config", .shown = "FILE",
		.help = "ssh configuration instead of your own"),
	OPT_ROW(struct top_opts, program, .name = "program", .shown = "PATH",
		.help = "assay's path on the hosts (preset: this program's own)"),
	OPT_ROW(struct top_opts, interval, .name = "interval", .also = "delay loop d", .preset = "1s",
		.unit = "s", .min = 0.05, .max = 3600,
		.help = "time between two readings, over which rates are computed"),
	OPT_ROW(struct top_opts, gpus_only, .name = "gpus-only",
		.help = "read and show only GPUs with their links and processes; no host, ports and runs"),
	OPT_ROW(struct top_opts, record, .name = "record", .also = "log", .shown = "FILE",
		.help = "also write all readings to this new file"),
	OPT_ROW(struct top_opts, replay, .name = "replay", .also = "play", .shown = "FILE",
		.help = "show a recording instead of machines. The arrow keys move through it"),
	OPT_ROW(struct top_opts, at, .name = "at", .also = "seek", .preset = "-1", .unit = "s", .min = -1,
		.max = 1e9, .shown = "TIME",
		.help = "with --replay: begin at this time of the recording (-1: at its start; with --once at its "
			"end)"),
	OPT_ROW(struct top_opts, once, .name = "once", .also = "batch snapshot",
		.help = "print one state without a screen, then end"),
	OPT_ROW(struct top_opts, count, .name = "count", .also = "samples iterations n", .min = 1, .max = 1e9,
		.shown = "N", .help = "show N states, then end"),
	OPT_ROW(struct top_opts, json, .name = "json", .help = "print one JSON object per line, no screen"),
	OPT_ROW(struct top_opts, pid, .name = "pid", .also = "process p", .min = 1, .max = 4194304,
		.shown = "PID",
		.help = "show only this process; with nccl, the NCCL variables of this process"),
	OPT_ROW(struct top_opts, sort, .name = "sort", .also = "order", .preset = "usual",
		.choices = screen_sort_names,
		.help = "order of GPUs, processes and nodes; usual: GPUs by number, processes by memory, nodes worst first"),
	OPT_ROW(struct top_opts, filter, .name = "filter", .also = "grep", .shown = "TEXT",
		.help = "show only processes (of several machines: machines) whose line contains TEXT"),
	OPT_ROW(struct top_opts, theme, .name = "theme", .also = "colors colours",
		.choices = screen_theme_names,
		.help = "colours for a dark or a light background, strong contrast, or no colours; preset dark, with NO_COLOR mono"),
	OPT_ROW(struct top_opts, machine, .name = "machine", .shown = "DIR",
		.help = "with a view: show the settings and states of a recorded machine; no rates"),
};

enum screen_theme top_theme(const struct top_opts *o, bool screen)
{
	const char *no_colour = getenv("NO_COLOR");

	for (int i = 0; o->theme && i < SCREEN_THEME_COUNT; i++)
		if (!strcmp(o->theme, screen_theme_names[i]))
			return i;
	return !screen || (no_colour && *no_colour) ? SCREEN_THEME_mono : SCREEN_THEME_dark;
}

/* Two options that contradict each other. */
struct pair {
	bool both;
	const char *message;
};

static enum status refuse(const struct pair *pairs, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (pairs[i].both)
			return error_set(err, STATUS_BAD_INPUT, "%s", pairs[i].message);
	return STATUS_OK;
}

static enum status check(const void *opts_, struct error *err)
{
	const struct top_opts *o = opts_;
	bool hosts = o->hosts || o->hosts_file;
	const struct pair pairs[] = {
		{o->hosts && o->hosts_file, "--hosts and --hosts-file cannot be combined"},
		{o->ssh_config && !hosts, "--ssh-config works only with --hosts or --hosts-file"},
		{o->program && !hosts, "--program works only with --hosts or --hosts-file"},
		{hosts && o->replay,
		 "--replay and --hosts cannot be combined: a recording has its own nodes"},
		{o->at >= 0 && !o->replay, "--at works only with --replay"},
		{o->gpus_only && (o->replay || o->what),
		 "--gpus-only works only with machines that are read now, and without a view"},
		{o->record && o->replay, "--record and --replay cannot be combined"},
		{o->once && o->count > 1, "--once and --count cannot be combined"},
		{o->what && hosts,
		 "a view shows this machine only; for others: assay launch --hosts HOST,.. -- top nvlink --once"},
		{o->what && (o->record || o->replay), "--record and --replay work without a view"},
		{o->what && (o->filter || o->sort), "--filter and --sort work without a view"},
		{o->machine && !o->what, "--machine works only with a view: nccl, nvlink, ib or links"},
	};

	return refuse(pairs, sizeof(pairs) / sizeof(pairs[0]), err);
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct top_opts *o = opts_;
	struct error err = {0};
	const char *why;

	if (check(o, &err)) {
		log_error(c->log, LOG_TOPIC_MACHINE, "%s", err.text);
		return EXIT_USAGE;
	}
	if (o->what)
		return top_links(c, o);
	if (single_process_check("top without a view", &err)) {
		log_error(c->log, LOG_TOPIC_MACHINE, "%s", err.text);
		return EXIT_USAGE;
	}
	if (o->once || o->count || o->json || !top_terminal_can(&why))
		return top_lines(c, o);
	return top_screen(c, o);
}

const struct command command_top = {
	.name = "top",
	.summary = "watch GPUs, links, host and processes of one or several machines",
	.example = "assay top --once   # one line per GPU, its processes, and the host, without a screen",
	.help = "Shows a live screen with one line per GPU, and with links, host, live runs of assay and "
		"processes. The key ? lists all keys. With --hosts, the screen has one line per machine, the "
		"worst first. assay leaves nothing on these machines. If the output is not a terminal, assay "
		"prints one line per reading.\n\n"
		"If assay can no longer read a value, it shows the value's age. An absent value is -, never "
		"0.\n\n"
		"nccl lists the NCCL variables of the environment, of NCCL_CONF_FILE or ~/.nccl.conf, and of "
		"/etc/nccl.conf. Each has its meaning and a verdict (ok, hurts or unknown). --pid reads the "
		"variables of another process of yours.\n"
		"nvlink lists each link's state, remote device and errors, and its payload and raw rates.\n"
		"ib lists InfiniBand and RoCE ports.\n"
		"links shows these three.\n\n"
		"assay launch -- top links --once shows each node once. Helper processes read the driver, so "
		"a hung driver does not stop assay: it reports the problem and keeps working.\n\n"
		"A view exits with 0 if nothing is wrong, 1 if a link is down or a setting disables hardware "
		"that is present, and 2 if something could not be read. Without a view, --once exits with 0, "
		"or with 2 if a machine could not be read. If you leave the screen or press Ctrl-C, the exit "
		"code is 0.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct top_opts)},
	.check = check,
	.run = run,
};
