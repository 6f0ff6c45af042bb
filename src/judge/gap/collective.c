/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of several GPUs: the rate their links allow, and the factors of the loss.
 * docs/explanation/methods/collectives.md. */
#include <math.h>
#include "core/text/units.h"
#include "journal/figure/network_bound.h"
#include "judge/gap/latency_fit.h"
#include "judge/gap/gap.h"

/* Share of payload in the protocol's lines: 8 bytes of data and 8 of flags, or 120 of 128. */
static const struct {
	const char *name;
	double payload;
	const char *why;
} protocols[] = {
	{"simple", 1, "protocol simple: all bytes are data"},
	{"ll128", 120.0 / 128, "protocol ll128: 120 of 128 bytes are data"},
	{"ll", 0.5, "protocol ll: 8 of 16 bytes are data"},
};

/* Links of the GPU with the fewest NVLinks up. Every ring passes through it. */
static double fewest_links(const struct subject *s, double *raw)
{
	double fewest = INFINITY;

	*raw = gpu_get(s->gpu, GPU_FACT_nvlink_rate_gbps, 0) * 1e9;
	for (size_t i = 0; i < s->gpu_count; i++) {
		const struct gpu *g = subject_gpu(s, i);
		double links = g ? gpu_get(g, GPU_FACT_nvlink_active, 0) : 0;

		fewest = links < fewest ? links : fewest;
	}
	return isfinite(fewest) ? fewest : 0;
}

enum switch_adds { SWITCH_NOT, SWITCH_ADDS, SWITCH_NOT_TOLD };

enum { SWITCH_FROM_CC = 90, SWITCH_FROM_RANKS = 4 };

/* Whether the NVLink switch adds, as NCCL reports it. For windows, or if the user runs another profiler, NCCL
 * reports nothing. Then the switch may add on GPUs from sm_90 on, and gains from four ranks on. Before a run
 * it is assumed not to. */
static enum switch_adds switch_adds(const struct subject *s)
{
	double nvls;

	if (strcmp(s->c->limit, "collective.allreduce"))
		return SWITCH_NOT;
	if (case_number(s->c, "nvls", &nvls))
		return nvls > 0 ? SWITCH_ADDS : SWITCH_NOT;
	if (s->ctx->ahead || gpu_get(s->gpu, GPU_FACT_cc, 0) < SWITCH_FROM_CC ||
	    s->gpu_count < SWITCH_FROM_RANKS)
		return SWITCH_NOT;
	return SWITCH_NOT_TOLD;
}

/* The way between nodes. It is rings if NCCL reports a ring, or before a run. With collnet, and with nvls,
 * which uses collnet between nodes, the network adds. */
static enum network_bound_way way_between(const struct subject *s)
{
	const char *algorithm = case_text(s->c, "algorithm");

	if (s->ctx->ahead || (algorithm && !strcmp(algorithm, "ring")))
		return NETWORK_BOUND_RING;
	if (!algorithm || !strncmp(algorithm, "collnet", 7) || !strcmp(algorithm, "nvls") ||
	    !strcmp(algorithm, "symmetric"))
		return NETWORK_BOUND_ADDS;
	return NETWORK_BOUND_LEAST;
}

static const char *op_of(const struct subject *s)
{
	const char *dot = strchr(s->c->limit, '.');

	return dot ? dot + 1 : "";
}

static bool nodes_of(const struct subject *s, struct network_bound *b)
{
	return network_bound_read(b, json_object_get(s->c->plan, "layout"));
}

static void bound_between(const struct subject *s, const struct network_bound *b, struct bound *out)
{
	static const char *const ways[] = {[NETWORK_BOUND_RING] = "by rings",
					   [NETWORK_BOUND_LEAST] = "the least that must cross",
					   [NETWORK_BOUND_ADDS] = "the network may add"};
	enum network_bound_way way = way_between(s);
	double network = network_bound_rate(b), value = network_bound_of(b, op_of(s), way);

	if (!(value > 0))
		return;
	out->value = value;
	out->from = BOUND_DEVICE;
	snprintf(out->formula, sizeof(out->formula),
		 "ports of a node (sysfs): %.1f GB/s x %.3f, %s for %u ranks on %u nodes", network / 1e9,
		 value / network, ways[way], b->ranks, b->nodes);
}

static void bound_of_nvlinks(const struct subject *s, struct bound *out)
{
	double raw, links = fewest_links(s, &raw), n = s->gpu_count;
	enum switch_adds adds = switch_adds(s);

	if (!(links > 0) || !(raw > 0) || n < 2)
		return;
	out->value = links * raw * BOUND_NVLINK_DATA;
	out->from = BOUND_DEVICE;
	snprintf(out->formula, sizeof(out->formula), "%.0f NVLinks x %.4f GB/s x 16/17", links, raw / 1e9);
	if (adds == SWITCH_NOT)
		return;
	out->value *= 2 * (n - 1) / (n + 1);
	snprintf(out->formula, sizeof(out->formula),
		 "%.0f NVLinks x %.4f GB/s x 16/17 x 2 x %.0f / %.0f: the switch %s", links, raw / 1e9, n - 1,
		 n + 1, adds == SWITCH_ADDS ? "adds" : "may add (NCCL did not report it)");
}

void bound_collective(const struct subject *s, struct bound *out)
{
	struct network_bound nodes;

	if (nodes_of(s, &nodes))
		bound_between(s, &nodes, out);
	else
		bound_of_nvlinks(s, out);
}

double bound_of_links(const struct subject *s, const struct bound *b)
{
	double n = s->gpu_count;
	struct network_bound nodes;

	if (nodes_of(s, &nodes))
		return network_bound_usual(&nodes, op_of(s));
	return n < 2 || switch_adds(s) == SWITCH_NOT ? b->value : b->value * (n + 1) / (2 * (n - 1));
}

bool collective_above_link(const struct subject *s, const struct bound *b)
{
	struct network_bound nodes;

	if (b->from == BOUND_NONE)
		return false;
	if (nodes_of(s, &nodes))
		return way_between(s) == NETWORK_BOUND_ADDS &&
		       s->figure > network_bound_of(&nodes, op_of(s), NETWORK_BOUND_LEAST);
	return switch_adds(s) != SWITCH_NOT && s->figure > bound_of_links(s, b);
}

/* Reads the mean time of the judged phase, in ns. */
static bool time_of(const struct subject *s, double *ns)
{
	return s->phase && record_number(s->phase, "time_ns_mean", ns) && *ns > 0;
}

static const char *way_of(const struct record_case *c, char *buffer, size_t size)
{
	const char *algorithm = case_text(c, "algorithm"), *protocol = case_text(c, "protocol");

	if (!algorithm)
		return NULL;
	snprintf(buffer, size, "%s %s", algorithm, protocol ? protocol : "");
	return buffer;
}

static double size_of(const struct record_case *c)
{
	const char *text = record_option(c, "size");
	double bytes;

	return text && !units_parse(&bytes, text, "B", NULL) ? bytes : 0;
}

/* Collects the other sizes of this collective that ran the same way: bytes over the link, and their time. */
static size_t points_of(const struct subject *s, struct latency_fit_point *point)
{
	const struct record *r = s->ctx->record;
	char own[48], other[48];
	size_t n = 0;

	if (!way_of(s->c, own, sizeof(own)))
		return 0;
	for (size_t i = 0; i < r->case_count && n < LATENCY_FIT_POINTS; i++) {
		const struct record_case *c = &r->cases[i];
		struct subject o;
		double ns;

		if (c == s->c || strcmp(c->probe, s->c->probe) || strcmp(c->target, s->c->target) ||
		    !case_sound(c) ||
		    !record_same_options(s->c, c, (const char *const[]){"size", "search", NULL}) ||
		    !way_of(c, other, sizeof(other)) || strcmp(own, other))
			continue;
		subject_of(&o, s->ctx, c);
		if (!time_of(&o, &ns))
			continue;
		point[n++] = (struct latency_fit_point){.x = size_of(c), .ns = ns};
	}
	return n;
}

static void latency(struct judgement *out, const struct subject *s, double ns)
{
	struct latency_fit_point point[LATENCY_FIT_POINTS];
	size_t n = points_of(s, point);
	double a = latency_fit_latency_without(point, n, size_of(s->c));

	if (n < 2)
		gap_absent(out, "latency",
			   "fewer than two other sizes of this run used the same algorithm and protocol");
	else if (a < ns)
		gap_add(out, "latency", 1 - a / ns, 0.02, "%.1f us from a line through %zu other sizes",
			a / 1e3, n);
}

static void skew(struct judgement *out, const struct subject *s, double ns)
{
	double skew_ns;

	if (!subject_number(s, "skew_ns", &skew_ns)) {
		gap_absent(out, "skew", "single iterations of each rank were not timed");
		return;
	}
	if (skew_ns < ns)
		gap_add(out, "skew", 1 - skew_ns / ns, 0.01, "the last rank begins %.1f us after the first",
			skew_ns / 1e3);
}

static void links(struct judgement *out, const struct subject *s)
{
	double raw, up = fewest_links(s, &raw), most = gpu_get(s->gpu, GPU_FACT_nvlink_count, 0);
	struct network_bound nodes;

	if (!nodes_of(s, &nodes) && most > 0 && up > 0 && up < most)
		gap_absent(out, "links", "the bound counts only the %.0f of %.0f NVLinks that are up", up,
			   most);
}

bool gap_collective(struct judgement *out, const struct subject *s)
{
	const char *protocol = case_text(s->c, "protocol");
	double ns;

	if (!protocol || !time_of(s, &ns))
		return false; /* without NCCL's choice there are no factors */
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (!strcmp(protocol, protocols[i].name))
			gap_add(out, "protocol", protocols[i].payload, 0, "%s", protocols[i].why);
	latency(out, s, ns);
	skew(out, s, ns);
	links(out, s);
	return false; /* the switch and the copying blocks have no signal, so only the share is reported */
}
