/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/bound/bound.h"

double bound_flop_per_clock(const struct subject *s)
{
	const struct sku_value *flop = s->flops && *s->type ? sku_flop(s->flops, s->type) : NULL;
	double sms = s->gpu ? gpu_get(s->gpu, GPU_FACT_sm_count, 0) : 0;

	if (!(sms > 0) && s->sku)
		sms = s->sku->sm_low;
	return flop ? sms * flop->value : 0;
}

static double sku_or(const struct subject *s, enum sku_fact fact)
{
	return s->sku && s->sku->fact[fact].present ? s->sku->fact[fact].value : 0;
}

void bound_compute(const struct subject *s, struct bound *out)
{
	double flop = bound_flop_per_clock(s), clock = gpu_get(s->gpu, GPU_FACT_sm_clock_max_mhz, 0) * 1e6;
	double sms = gpu_get(s->gpu, GPU_FACT_sm_count, s->sku ? s->sku->sm_low : 0);
	enum bound_from from = BOUND_DEVICE;

	if (!(clock > 0) || !gpu_has(s->gpu, GPU_FACT_sm_count)) {
		from = BOUND_DATASHEET;
		clock = clock > 0 ? clock : sku_or(s, SKU_sm_clock_max);
	}
	if (!(flop > 0) || !(clock > 0))
		return;
	out->value = flop * clock;
	out->from = from;
	snprintf(out->formula, sizeof(out->formula), "%.0f SM x %.0f FLOP x %.3f GHz", sms, flop / sms,
		 clock / 1e9);
}

void bound_memory(const struct subject *s, struct bound *out)
{
	double clock = gpu_get(s->gpu, GPU_FACT_memory_clock_max_mhz, 0) * 1e6,
	       bits = gpu_get(s->gpu, GPU_FACT_bus_bits, 0);

	if (clock > 0 && bits > 0) {
		out->value = 2 * clock * bits / 8;
		out->from = BOUND_DEVICE;
		snprintf(out->formula, sizeof(out->formula), "2 x %.0f MHz x %.0f bit / 8", clock / 1e6,
			 bits);
		return;
	}
	out->value = sku_or(s, SKU_memory_bandwidth);
	if (!(out->value > 0))
		return;
	out->from = BOUND_DATASHEET;
	snprintf(out->formula, sizeof(out->formula), "datasheet: %.3f TB/s", out->value / 1e12);
}

double bound_pcie_lane(int gen, double *encoding)
{
	*encoding = gen >= 6 ? 242.0 / 256 : gen >= 3 ? 128.0 / 130 : 0.8;
	switch (gen) {
	case 1:
		return 2.5;
	case 2:
		return 5;
	case 3:
		return 8;
	case 4:
		return 16;
	case 5:
		return 32;
	case 6:
		return 64;
	default:
		return 0;
	}
}

double bound_pcie_one_way(const struct gpu *g)
{
	double encoding, rate = bound_pcie_lane((int)gpu_get(g, GPU_FACT_pcie_gen_max, 0), &encoding);

	return gpu_get(g, GPU_FACT_pcie_width_max, 0) * rate * 1e9 / 8 * encoding;
}

/* NVLinks between the two GPUs that the case found, whether up or down, so that a link that is down shows as
 * lost. Before a run: the links that are up on the GPU with fewer. */
static double nvlinks_of(const struct subject *s, double *raw)
{
	double links = 0, peers;

	*raw = gpu_get(s->gpu, GPU_FACT_nvlink_rate_gbps, 0) * 1e9;
	if (!s->ctx->ahead) {
		(void)case_number(s->c, "nvlink_rate_raw", raw);
		if (!case_number(s->c, "nvlinks", &links) || !(links > 0))
			return 0;
		(void)case_number(s->c, "nvlinks_most", &links);
		return links;
	}
	links = gpu_get(s->gpu, GPU_FACT_nvlink_active, 0);
	peers = s->peer ? gpu_get(s->peer, GPU_FACT_nvlink_active, 0) : 0;
	return links < peers ? links : peers;
}

/* Bound between GPUs: the NVLinks between them, or the narrower of their host links if the path is reported
 * as PCIe. */
static void p2p_bound(const struct subject *s, struct bound *out)
{
	const char *path = case_text(s->c, "path");
	double raw, links = nvlinks_of(s, &raw), own, peers;
	int ways = strstr(s->c->limit, "both") ? 2 : 1;
	const char *twice = ways == 2 ? "2 x " : "";

	if (links > 0 && raw > 0 && (!path || strcmp(path, "host"))) {
		out->value = ways * links * raw * BOUND_NVLINK_DATA;
		snprintf(out->formula, sizeof(out->formula), "%s%.0f NVLinks x %.4f GB/s x 16/17", twice,
			 links, raw / 1e9);
	} else if (path && strcmp(path, "peer") && s->peer) {
		own = bound_pcie_one_way(s->gpu);
		peers = bound_pcie_one_way(s->peer);
		out->value = ways * (own < peers ? own : peers);
		snprintf(out->formula, sizeof(out->formula), "%sthe narrower PCIe link of the two", twice);
	}
	if (out->value > 0)
		out->from = BOUND_DEVICE;
}

/* h2d and d2h: one direction. both: the sum of both directions. */
static void link_bound(const struct subject *s, struct bound *out)
{
	double gen = gpu_get(s->gpu, GPU_FACT_pcie_gen_max, sku_or(s, SKU_pcie_gen));
	double width = gpu_get(s->gpu, GPU_FACT_pcie_width_max, sku_or(s, SKU_pcie_width)), encoding, rate;
	int ways = strstr(s->c->limit, "both") ? 2 : 1;
	bool host = strstr(s->c->limit, "h2d") || strstr(s->c->limit, "d2h") || ways == 2;

	rate = bound_pcie_lane((int)gen, &encoding);
	if (!host || !(rate > 0) || !(width > 0))
		return;
	out->value = ways * width * rate * 1e9 / 8 * encoding;
	out->from = gpu_has(s->gpu, GPU_FACT_pcie_gen_max) ? BOUND_DEVICE : BOUND_DATASHEET;
	snprintf(out->formula, sizeof(out->formula), "%s%.0f lanes x %.0f GT/s x %s / 8",
		 ways == 2 ? "2 x " : "", width, rate, gen >= 6 ? "242/256" : "128/130");
}

/* False if other work slowed the ceiling down, or its figures scatter too much to use it. */
static bool undisturbed(const struct subject *s)
{
	const struct cpu *cpu = s->ctx->cpu;
	double share, width, threads = 1, granted = 1;

	if (s->gpu)
		return true;
	if (record_number(s->phase, "half_width_share", &width) && width > BOUND_SPREAD_STOP)
		return false;
	if (!subject_number(s, "cpu_share", &share))
		return true;
	if (subject_number(s, "threads", &threads) && cpu && cpu->quota > 0 && cpu->quota < threads)
		granted = cpu->quota / threads;
	return share >= BOUND_CPU_SHARE * granted;
}

/* True if both used the same number of threads. If one does not report it, the option of its key counts, else
 * all CPUs. */
static bool same_threads(const struct record_case *a, const struct record_case *b)
{
	const char *x = record_option(a, "threads"), *y = record_option(b, "threads");
	double n, m;

	if (case_number(a, "threads", &n) && case_number(b, "threads", &m))
		return n > m - 0.5 && n < m + 0.5;
	return !strcmp(x ? x : "0", y ? y : "0");
}

double bound_ceiling(const struct judge_context *ctx, const struct record_case *c,
		     const struct record_case **peak, const struct record_case **disturbed)
{
	double best = 0;
	size_t i;

	*peak = *disturbed = NULL;
	for (i = 0; i < ctx->record->case_count; i++) {
		const struct record_case *other = &ctx->record->cases[i];
		struct subject s;

		if (strcmp(other->probe, "peak") || strcmp(other->limit, c->limit) ||
		    strcmp(other->target, c->target) || !case_sound(other) || !same_threads(c, other) ||
		    !traffic_same(c, other))
			continue;
		subject_of(&s, ctx, other);
		if (!s.has_figure || !(s.figure > best))
			continue;
		if (!undisturbed(&s)) {
			*disturbed = other;
			continue;
		}
		best = s.figure;
		*peak = other;
	}
	return best;
}

bool bound_interleaved(const struct subject *s, struct interleaved_ratio *out)
{
	*out = (struct interleaved_ratio){0};
	if (s->gpu || !record_number(s->phase, "ceiling_ratio", &out->ratio) || !(out->ratio > 0))
		return false;
	if (!record_number(s->phase, "ceiling_ratio_low", &out->low) || out->low > out->ratio)
		out->low = out->ratio;
	if (!record_number(s->phase, "ceiling_ratio_high", &out->high) || out->high < out->ratio)
		out->high = out->ratio;
	return true;
}

static void ceiling_bound(const struct subject *s, struct bound *out)
{
	const struct record_case *peak, *disturbed;
	const char *by = record_text(record_phase(s->c, "ceiling"), "ceiling_by");
	struct interleaved_ratio interleaved;
	char unit[32];
	double value;

	if (traffic_of_ceiling(s->c, unit, sizeof(unit)))
		return; /* a loop with other traffic is no bound */
	if (s->has_figure && bound_interleaved(s, &interleaved)) {
		out->value = s->figure / interleaved.ratio;
		out->from = BOUND_CEILING;
		snprintf(out->formula, sizeof(out->formula), "interleaved with %.120s",
			 by ? by : "its ceiling");
		return;
	}
	value = bound_ceiling(s->ctx, s->c, &peak, &disturbed);
	if (!(value > 0))
		return;
	out->value = value;
	out->from = BOUND_CEILING;
	snprintf(out->formula, sizeof(out->formula), "this run's %.140s", peak->key);
}

void bound_of(const struct subject *s, struct bound *out)
{
	*out = (struct bound){.from = BOUND_NONE};
	if (subject_trains(s))
		bound_training(s, out);
	else if (s->gpu && *s->type && !strcmp(s->c->probe, "attention"))
		bound_attention(s, out);
	else if (s->gpu && *s->type)
		bound_compute(s, out);
	else if (s->gpu && !strcmp(s->c->limit, "memory") && (s->ctx->ahead || subject_beyond_cache(s)))
		bound_memory(s, out);
	else if (s->gpu && !strncmp(s->c->limit, "link.p2p", 8))
		p2p_bound(s, out);
	else if (s->gpu && !strncmp(s->c->limit, "collective.", 11))
		bound_collective(s, out);
	else if (s->gpu && !strncmp(s->c->limit, "link", 4))
		link_bound(s, out);
	else if (!s->gpu && strcmp(s->c->probe, "peak") && (*s->type || !strcmp(s->c->limit, "memory")))
		ceiling_bound(s, out);
}
