/* SPDX-License-Identifier: Apache-2.0 */
/* Probe link: options, fields, work and descriptor (at the end). link.h defines which bytes count. */
#include "probe/link/link.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const directions[] = {"h2d", "d2h", "both", "latency", NULL};
static const char *const memories[] = {"pinned", "pageable", NULL};

static const struct opt opt_rows[] = {
	OPT_ROW(struct link_opts, direction, .name = "direction", .preset = "h2d", .choices = directions,
		.help = "direction of copies: host to device, device to host, or both at once; latency: time of one read of host memory by a kernel"),
	OPT_ROW(struct link_opts, memory, .name = "memory", .preset = "pinned", .choices = memories,
		.help = "kind of host memory; the driver copies pageable memory through its own pinned buffer"),
	OPT_ROW(struct link_opts, size, .name = "size", .preset = "256MiB", .unit = "B", .min = 64,
		.max = 0x1p36, .help = "bytes of one copy"),
	OPT_ROW(struct link_opts, numa, .name = "numa", .preset = "auto", .shown = "NODE",
		.help = "NUMA node of the host memory; auto: the node on which the process runs"),
};

const struct field link_fields[] = {LINK_FIELDS(FIELD_ROW)};

enum status link_numa_node(const struct link_opts *o, int *node, struct error *err)
{
	char *end;
	long n;

	*node = -1;
	if (!o->numa || !strcmp(o->numa, "auto"))
		return STATUS_OK;
	n = strtol(o->numa, &end, 10);
	if (end == o->numa || *end || n < 0 || n > 1023)
		return error_set(err, STATUS_BAD_INPUT,
				 "link: numa=%.20s is neither auto nor the number of a NUMA node", o->numa);
	*node = (int)n;
	return STATUS_OK;
}

/* The receiver needs the arriving data and the expected data, the sender only its own. */
static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	const struct link_opts *o = opts;
	double in = o->direction == LINK_H2D || o->direction == LINK_BOTH;
	double back = o->direction == LINK_D2H || o->direction == LINK_BOTH;

	(void)m, (void)t;
	out->device_bytes = (double)o->size * (2 * in + back);
	out->host_bytes = (double)o->size * (in + back);
}

static enum status check(const void *opts, struct error *err)
{
	const struct link_opts *o = opts;
	int node;

	if (o->size % 64)
		return error_set(err, STATUS_BAD_INPUT, "link: size must be a multiple of 64 bytes");
	return link_numa_node(o, &node, err);
}

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	static const char *const limits[] = {"link.h2d", "link.d2h", "link.both", "latency"};
	const struct link_opts *o = opts;
	struct work w = {.limit = limits[o->direction]};

	(void)m, (void)t;
	if (o->direction == LINK_LATENCY)
		w.messages = LINK_HOPS;
	else
		w.link_bytes = (double)o->size * (o->direction == LINK_BOTH ? 2 : 1);
	return w;
}

static const struct engine *const engines[] = {
	&link_driver_engine,
	&link_own_engine,
	NULL,
};

const struct probe probe_link = {
	.name = "link",
	.summary = "rate of copies between host and device memory, and latency of the host link",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct link_opts)},
	.fields = link_fields,
	.field_count = LINK_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check,
	.verify = link_verify,
};
