/* SPDX-License-Identifier: Apache-2.0 */
/* GPU to GPU. What counts stands in p2p.h; descriptor at the end. */
#include "probe/p2p/p2p.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const directions[] = {"to", "both", "latency", NULL};

static const char *const patterns[] = {"pair", "all", "out", "in", NULL};
static const char *const searches[] = {"first", "top", NULL};

static const struct opt opt_rows[] = {
	OPT_ROW(struct p2p_opts, direction, .name = "direction", .preset = "to", .choices = directions,
		.help = "from the first GPU to the second, both ways at once, or the latency of the second's "
			"read of the first's memory"),
	OPT_ROW(struct p2p_opts, pattern, .name = "pattern", .preset = "pair", .choices = patterns,
		.help = "target node: each GPU sends to all others at once, the first to all others, all others to the "
			"last"),
	OPT_ROW(struct p2p_opts, search, .name = "search", .preset = "first", .choices = searches,
		.help = "stores and loads of a pair: by all multiprocessors, or the best of all, 32 and 16"),
	OPT_ROW(struct p2p_opts, size, .name = "size", .preset = "1GiB", .unit = "B", .min = 64,
		.max = 0x1p36, .help = "bytes of one copy"),
};

const struct field p2p_fields[] = {P2P_FIELDS(FIELD_ROW)};

static enum status check(const void *opts, struct error *err)
{
	const struct p2p_opts *o = opts;

	if (o->size % 64)
		return error_set(err, STATUS_BAD_INPUT, "p2p: size is a multiple of 64 bytes");
	if (o->pattern != P2P_PAIR && o->direction != P2P_TO)
		return error_set(err, STATUS_BAD_INPUT, "p2p: pattern %s goes one way: direction to",
				 patterns[o->pattern]);
	return STATUS_OK;
}

static double others(const struct target *t)
{
	return t->gpu_count > 1 ? t->gpu_count - 1 : 1;
}

/* The receiver's: what arrives and what should; both ways: and what it sends. */
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
	.summary = "copies from GPU to GPU, and the latency between them",
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
