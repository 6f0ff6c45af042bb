/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of links: the host link over PCIe, and links between GPUs over NVLink. */
#include "judge/gap/gap.h"

static void lanes(struct judgement *out, const struct subject *s, const char *field, const char *signal_name,
		  enum gpu_fact most, const char *name)
{
	double now, maximum = gpu_get(s->gpu, most, 0), e1, e2, a, b;
	struct span span;
	bool gen = most == GPU_FACT_pcie_gen_max;

	if (!subject_number(s, field, &now)) {
		if (!subject_span(s, signal_name, &span)) {
			gap_absent(out, name, "not read during the copy");
			return;
		}
		now = span.max;
	}
	if (!(maximum > 0) || !(now > 0))
		return;
	if (!gen) {
		gap_add(out, name, now / maximum, 0, "%.0f of %.0f lanes during the copy", now, maximum);
		return;
	}
	a = bound_pcie_lane((int)now, &e1);
	b = bound_pcie_lane((int)maximum, &e2);
	if (a > 0 && b > 0)
		gap_add(out, name, a * e1 / (b * e2), 0, "generation %.0f of %.0f during the copy", now,
			maximum);
}

bool gap_link(struct judgement *out, const struct subject *s)
{
	struct factor *assumed;
	double payload;
	bool told = subject_number(s, "pcie_max_payload", &payload) && payload > 0;

	lanes(out, s, "pcie_width_loaded", "pcie_width", GPU_FACT_pcie_width_max, "width");
	lanes(out, s, "pcie_gen_loaded", "pcie_gen", GPU_FACT_pcie_gen_max, "generation");
	if (told) {
		gap_add(out, "packets", payload / (payload + 26), 0,
			"packets carry %.0f B of payload and 26 B of overhead", payload);
		return true;
	}
	assumed = gap_add(out, "packets", 256.0 / 282, 0.03,
			  "assumed 256 B payload; reading the configuration space needs root");
	if (assumed)
		assumed->assumed = true;
	return false;
}

/* Payload and raw bytes that crossed in the judged direction, from the counters of the GPU whose stream was
 * timed. */
static bool crossed(const struct subject *s, double *payload, double *raw)
{
	bool both = strstr(s->c->limit, "both") != NULL, back = !strcmp(s->c->engine, "load");
	double tx, rx, raw_tx, raw_rx;

	if (strstr(s->c->limit, ".in")) /* the counters belong to the first sender, not the receiver */
		return false;
	if (!record_number(s->phase, "nvlink_tx_bytes", &tx) ||
	    !record_number(s->phase, "nvlink_rx_bytes", &rx) ||
	    !record_number(s->phase, "nvlink_raw_tx_bytes", &raw_tx) ||
	    !record_number(s->phase, "nvlink_raw_rx_bytes", &raw_rx))
		return false;
	*payload = both ? tx + rx : back ? rx : tx;
	*raw = both ? raw_tx + raw_rx : back ? raw_rx : raw_tx;
	return *payload > 0 && *raw >= *payload;
}

/* Adds two ratios that are only shown: over the same copy by the copy engines, and over twice one direction
 * alone. */
static void show_ratios(struct judgement *out, const struct subject *s)
{
	const struct record *r = s->ctx->record;
	bool both = strstr(s->c->limit, "both") != NULL;

	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];
		bool same = !strcmp(c->engine, s->c->engine), driver = !strcmp(c->engine, "driver");
		bool same_limit = !strcmp(c->limit, s->c->limit), one_way = !strcmp(c->limit, "link.p2p");
		struct factor *f = NULL;
		struct subject o;

		if (c == s->c || strcmp(c->probe, s->c->probe) || strcmp(c->target, s->c->target) ||
		    !case_sound(c) ||
		    !record_same_options(s->c, c, (const char *const[]){"direction", "search", NULL}))
			continue;
		subject_of(&o, s->ctx, c);
		if (!o.has_figure || !(o.figure > 0) || strcmp(o.phase_name, s->phase_name))
			continue;
		if (driver && !same && same_limit)
			f = gap_add(out, "engine", s->figure / o.figure, 0,
				    "over the rate of the copy engines, case %u", c->id);
		else if (both && same && one_way)
			f = gap_add(out, "both ways", s->figure / (2 * o.figure), 0,
				    "over twice the rate of one direction alone, case %u", c->id);
		if (f)
			f->shown_only = true;
	}
}

bool gap_p2p(struct judgement *out, const struct subject *s)
{
	double links, most, rate, mean_ns, iterations, payload, raw, time;
	int ways = strstr(s->c->limit, "both") ? 2 : 1;

	if (!case_number(s->c, "nvlinks", &links) || !(links > 0) ||
	    !case_number(s->c, "nvlink_rate_raw", &rate))
		return false; /* PCIe between two GPUs has no signal of its own */
	if (case_number(s->c, "nvlinks_most", &most) && most > 0)
		gap_add(out, "links", links / most, 0, "%.0f of %.0f NVLinks are up between the two", links,
			most);
	else
		most = links;
	if (!crossed(s, &payload, &raw) || !record_number(s->phase, "time_ns_mean", &mean_ns) ||
	    !record_number(s->phase, "iterations", &iterations)) {
		gap_absent(out, "busy", "the NVLink counters were not read in the window");
		show_ratios(out, s);
		return false;
	}
	time = mean_ns * 1e-9 * iterations;
	gap_add(out, "busy", raw / (ways * links * rate * time), 0.01,
		"%.4g GB/s raw, from the NVLink counters (NVML 140, 141)", raw / time / 1e9);
	gap_add(out, "payload", payload / raw / BOUND_NVLINK_DATA, 0.01,
		"%.4f of the raw bytes are data (NVML 138, 139); at most 16/17 can be", payload / raw);
	show_ratios(out, s);
	return true;
}
