/* SPDX-License-Identifier: Apache-2.0 */
/* Probe p2p: options, fields, work and descriptor (at the end). p2p.h defines which bytes count. */
#include "probe/p2p/p2p.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const directions[] = {"to", "both", "latency", NULL};

static const char *const patterns[] = {"pair", "all", "out", "in", NULL};
static const char *const searches[] = {"first", "top", NULL};

static const struct opt opt_rows[] = {
	OPT_ROW(struct p2p_opts, direction, .name = "direction", .preset = "to", .choices = directions,
		.help = "to: first GPU to second; both: both directions at once; latency: of the second GPU's "
			"reads of the first's memory"),
	OPT_ROW(struct p2p_opts, pattern, .name = "pattern", .preset = "pair", .choices = patterns,
		.help = "pair: two GPUs. Target node: all: each GPU sends to all others; out: the first to all others; in: all others to the "
			"last"),
	OPT_ROW(struct p2p_opts, search, .name = "search", .preset = "first", .choices = searches,
		.help = "SMs that engines store and load use on a pair: all (first), or the best of all, 32 and 16 (top)"),
	OPT_ROW(struct p2p_opts, size, .name = "size", .preset = "1GiB", .unit = "B", .min = 64,
		.max = 0x1p36, .help = "bytes of one copy"),
};

const struct field p2p_fields[] = {P2P_FIELDS(FIELD_ROW)};

static enum status check(const void *opts, struct error *err)
{
	const struct p2p_opts *o = opts;

	if (o->size % 64)
		return error_set(err, STATUS_BAD_INPUT, "p2p: size must be a multiple of 64 bytes");
	if (o->pattern != P2P_PAIR && o->direction != P2P_TO)
		return error_set(err, STATUS_BAD_INPUT, "p2p: pattern=%s needs direction=to",
				 patterns[o->pattern]);
	return STATUS_OK;
}

static double others(const struct target *t)
{
	return t->gpu_count > 1 ? t->gpu_count - 1 : 1;
}

/* The receiver needs the arriving data and the expected data. With direction=both each GPU also needs the
 * data it sends. */
static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	static const double copies[] = {2, 3, 0};
	const struct p2p_opts *o = opts;

	(void)m;
	if (o->pattern != P2P_PAIR) {
		out->device_bytes = (o->pattern == P2P_ALL ? 3 : 2) * others(t) * (double)o->size;
		return;
	}
	out->device_bytes = copies[o->direction] * (double)o->size;
}

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	static const char *const limits[] = {"link.p2p", "link.p2p.both", "latency"};
	static const char *const several[] = {"", "link.p2p.all", "link.p2p.out", "link.p2p.in"};
	const struct p2p_opts *o = opts;
	struct work w = {.limit = o->pattern ? several[o->pattern] : limits[o->direction]};

	(void)m;
	if (o->pattern != P2P_PAIR)
		w.link_bytes = others(t) * (double)o->size;
	else if (o->direction == P2P_LATENCY)
		w.messages = P2P_HOPS;
	else
		w.link_bytes = (double)o->size * (o->direction == P2P_BOTH ? 2 : 1);
	return w;
}

static const struct engine *const engines[] = {
	&p2p_driver_engine,
	&p2p_store_engine,
	&p2p_load_engine,
	NULL,
};

const struct probe probe_p2p = {
	.name = "p2p",
	.summary = "rate of copies from GPU to GPU, and latency between them",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct p2p_opts)},
	.fields = p2p_fields,
	.field_count = P2P_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check,
	.verify = p2p_verify,
};
