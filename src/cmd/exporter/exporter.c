/* SPDX-License-Identifier: Apache-2.0 */
/* assay exporter: serves the metrics of this machine to Prometheus. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "cmd/command.h"
#include "cmd/exporter/exporter.h"
#include "core/clock.h"

static const struct opt opts[] = {
	OPT_ROW(struct exporter_opts, host, .name = "host", .also = "bind address listen web.listen-address",
		.preset = "127.0.0.1", .help = "address to listen on; 0.0.0.0: every interface"),
	OPT_ROW(struct exporter_opts, port, .name = "port", .preset = "19841", .max = 65535,
		.help = "port to listen on; 0: any free one"),
	OPT_ROW(struct exporter_opts, names, .name = "names", .preset = "assay", .choices = page_names_words,
		.help = "names of the metrics: assay's own, those of dcgm-exporter, or both"),
	OPT_ROW(struct exporter_opts, interval, .name = "interval", .also = "collect-interval c",
		.preset = "1s", .unit = "s", .min = 0.1, .max = 60,
		.help = "time between two readings; it does not depend on the scrapes"),
	OPT_ROW(struct exporter_opts, web_config, .name = "web-config",
		.also = "web.config.file web-config-file", .shown = "FILE",
		.help = "Prometheus' web configuration file, with TLS certificate and users"),
	OPT_ROW(struct exporter_opts, processes, .name = "processes", .preset = "8", .min = 1, .max = 64,
		.help = "largest number of processes to show per GPU; those with the most memory come first"),
	OPT_ROW(struct exporter_opts, connections, .name = "max-connections", .preset = "512", .min = 8,
		.max = 20000, .help = "most open connections"),
	OPT_ROW(struct exporter_opts, runs, .name = "runs", .shown = "DIR",
		.help = "folder with run directories (default: assay-runs)"),
	OPT_ROW(struct exporter_opts, job_files, .name = "job-files", .also = "hpc-job-mapping-dir",
		.shown = "DIR",
		.help = "folder in which a Slurm prolog writes the jobs of GPU N into the file N (default: "
			"$DCGM_HPC_JOB_MAPPING_DIR)"),
	OPT_ROW(struct exporter_opts, pods, .name = "pod-resources", .also = "pod-resources-kubelet-socket",
		.shown = "SOCKET",
		.help = "socket on which the kubelet lists the pods that use GPUs (default: "
			"$DCGM_POD_RESOURCES_KUBELET_SOCKET, or /var/lib/kubelet/pod-resources/kubelet.sock)"),
	OPT_ROW(struct exporter_opts, replay, .name = "replay", .shown = "FILE",
		.help = "serve the values of this recording in a loop, instead of this machine's"),
};

/* The readers are processes of their own, which find the folder and the socket in their environment. */
static enum status take_places(const struct exporter_opts *o, struct error *err)
{
	if (o->job_files && access(o->job_files, R_OK | X_OK))
		return error_errno(err, errno, "--job-files %s", o->job_files);
	if (o->pods && access(o->pods, R_OK | W_OK))
		return error_errno(err, errno, "--pod-resources %s", o->pods);
	if ((o->job_files && setenv("DCGM_HPC_JOB_MAPPING_DIR", o->job_files, 1)) ||
	    (o->pods && setenv("DCGM_POD_RESOURCES_KUBELET_SOCKET", o->pods, 1)))
		return error_errno(err, errno, "the environment of the readers");
	return STATUS_OK;
}

static int run(const struct command_context *c, const void *opts_)
{
	struct exporter x = {.c = c, .o = opts_};
	struct error err = {0};
	enum status st = take_places(x.o, &err);

	if (!st)
		st = exporter_start(&x, &err);

	if (!st) {
		log_info(c->log, LOG_TOPIC_RUN,
			 strchr(x.o->host, ':') ? "exporter: %s://[%s]:%u/metrics"
						: "exporter: %s://%s:%u/metrics",
			 x.web->key ? "https" : "http", x.o->host, (unsigned)daemon_port(x.daemon));
		exporter_loop(&x);
	} else {
		log_error(c->log, LOG_TOPIC_RUN, "%s", err.text);
	}
	exporter_release(&x);
	return command_code(st);
}

const struct command command_exporter = {
	.name = "exporter",
	.summary = "serve the metrics of this machine to Prometheus",
	.example =
		"assay exporter --names both   # http://127.0.0.1:19841/metrics, with dcgm-exporter's names too",
	.help = "/metrics has the values of GPUs, NVLinks, processes, network, disks, processors, live runs "
		"and the last check. The format is Prometheus' text form, or OpenMetrics if the client asks "
		"for it. A value that was not read is absent, never 0.\n"
		"/-/healthy answers 200 while the exporter works, /-/ready after the first reading. The page "
		"/ shows each source and its state.\n\n"
		"Helper processes read the machine, at their own interval. If a driver hangs, its values "
		"become absent, assay_source_up is 0, and scrapes still work. The exporter needs no root, no "
		"DCGM and no other program.\n\n"
		"docs/how-to/scrape-a-node.md has the configuration of Prometheus, rules, alerts and "
		"dashboards.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct exporter_opts)},
	.single = true,
	.run = run,
};
