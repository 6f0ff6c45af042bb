/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/running/plan.h"
#include "cmd/shared/show.h"
#include "core/text/units.h"
#include "run/plan/memory_need.h"

const struct bench_case *running_busy(const struct plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->steps[i].count; k++)
			if (p->steps[i].cases[k].skip_cause == CAUSE_BUSY)
				return &p->steps[i].cases[k];
	return NULL;
}

bool running_lacks(const struct plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->steps[i].count; k++) {
			const struct bench_case *c = &p->steps[i].cases[k];

			if (c->team && c->skip == STATUS_UNAVAILABLE && c->require != REQUIRE_NOTHING)
				return true;
		}
	return false;
}

/* Power and disk space that a run may need: the power limits of the GPUs that it uses, and bytes per
 * second as measured in full runs on an H100 and an H200, which write samples and telemetry in blocks. */
struct demand {
	size_t runs, skips;
	double watts;
	bool watts_known;
	double journal_bytes;
};

static struct demand demand_of(const struct plan *p, const struct machine *m)
{
	struct demand d = {.watts_known = true, .journal_bytes = 200e3};
	bool used[256] = {false};

	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->steps[i].count; k++) {
			const struct bench_case *c = &p->steps[i].cases[k];

			d.skips += c->skip != STATUS_OK;
			d.runs += c->skip == STATUS_OK;
			for (unsigned g = 0;
			     !c->skip && c->probe->kind == PROBE_TIMED && g < c->target.gpu_count; g++)
				used[c->target.gpu[g] & 255] = true;
		}
	for (unsigned g = 0; g < 256 && g < machine_gpu_count(m); g++)
		if (used[g]) {
			d.watts += gpu_get(machine_gpu(m, g), GPU_FACT_power_limit_w, 0);
			d.watts_known = d.watts_known && gpu_has(machine_gpu(m, g), GPU_FACT_power_limit_w);
		}
	d.journal_bytes += p->seconds_expected * 12e3;
	return d;
}

/* For example "12.9 GB of device memory, 4.29 GB of host memory". */
static void add_bytes(struct text *out, double device, double host)
{
	char bytes[32];

	if (device > 0) {
		units_format(bytes, sizeof(bytes), device, "B");
		text_addf(out, "%s of device memory%s", bytes, host > 0 ? ", " : "");
	}
	if (host > 0 || !(device > 0)) {
		units_format(bytes, sizeof(bytes), host, "B");
		text_addf(out, "%s of host memory", bytes);
	}
}

static void add_need(struct text *out, const struct bench_case *c)
{
	if (c->skip || c->probe->kind != PROBE_TIMED)
		return;
	text_add(out, "      ");
	if (c->need.known)
		add_bytes(out, c->need.device_bytes, c->need.host_bytes);
	else
		text_addf(out, "memory unknown: probe %s has no estimate", c->probe->name);
	text_add(out, "\n");
}

static void add_peak(struct text *out, const struct plan *p)
{
	struct memory_need_peak peak = memory_need_peak(p);

	text_add(out, "memory up to ");
	add_bytes(out, peak.device_bytes, peak.host_bytes);
	if (peak.unknown)
		text_addf(out, "; unknown for %zu cases", peak.unknown);
	text_add(out, "\n");
}

/* Texts of the suite and the machine are cleaned, so that each stays on one line. */
static void add_case(struct text *out, const struct bench_case *c)
{
	text_addf(out, "  %3u %-9s ", c->id, c->target_text);
	utf8_add_clean(out, c->key, UTF8_KEEP_NOTHING);
	if (c->round)
		text_addf(out, ", round %u", c->round);
	text_add(out, "\n");
	add_need(out, c);
	if (!*c->beside)
		return;
	text_add(out, "      untrusted: ");
	utf8_add_clean(out, c->beside, UTF8_KEEP_NOTHING);
	text_add(out, "\n");
}

/* Cases skipped for the same reason: their number and their probes. */
struct skips {
	const struct bench_case *first;
	size_t count;
	struct text probes;
};

enum { SKIPS_MAX = 64 };

static void count_skip(struct skips *skips, size_t *count, const struct bench_case *c)
{
	char word[80];
	size_t i;

	for (i = 0; i < *count; i++)
		if (!strcmp(skips[i].first->skip_reason, c->skip_reason) &&
		    skips[i].first->skip_cause == c->skip_cause)
			break;
	if (i == *count && *count < SKIPS_MAX)
		skips[(*count)++].first = c;
	if (i == SKIPS_MAX)
		return; /* the first line counts it, and JSON lists every case */
	skips[i].count++;
	snprintf(word, sizeof(word), " %s,", c->probe->name);
	if (!strstr(text_str(&skips[i].probes), word))
		text_add(&skips[i].probes, word);
}

/* True if the machine lacks hardware or support for these cases. */
static bool is_absent(const struct skips *s)
{
	return s->first->skip == STATUS_UNSUPPORTED &&
	       (s->first->skip_cause == CAUSE_NO_HARDWARE || s->first->skip_cause == CAUSE_UNSUPPORTED);
}

/* Lists all cases that this machine cannot run in one line, with a count per reason. False if there are
 * fewer than two reasons. */
static bool add_absent(struct text *out, const struct skips *skips, size_t count)
{
	size_t reasons = 0, cases = 0, said = 0;

	for (size_t i = 0; i < count; i++)
		if (is_absent(&skips[i])) {
			reasons++;
			cases += skips[i].count;
		}
	if (reasons < 2)
		return false;
	text_addf(out, "skipped\n  %3zu that this machine cannot run: ", cases);
	for (size_t i = 0; i < count; i++) {
		char why[160];

		if (!is_absent(&skips[i]))
			continue;
		snprintf(why, sizeof(why), "%.*s", (int)strcspn(skips[i].first->skip_reason, ":"),
			 skips[i].first->skip_reason);
		text_add(out, said++ ? "; " : "");
		utf8_add_clean(out, why, UTF8_KEEP_NOTHING);
		text_addf(out, " (%zu)", skips[i].count);
	}
	text_add(out, "\n");
	return true;
}

static void add_skips(struct text *out, const struct plan *p)
{
	struct skips skips[SKIPS_MAX] = {{0}};
	size_t count = 0;
	bool joined, headed;

	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->steps[i].count; k++)
			if (p->steps[i].cases[k].skip)
				count_skip(skips, &count, &p->steps[i].cases[k]);
	joined = headed = add_absent(out, skips, count);
	for (size_t i = 0; i < count; i++) {
		const struct bench_case *c = skips[i].first;

		if (!joined || !is_absent(&skips[i])) {
			text_addf(out, "%s  %3zu of%.*s: %s, %s: ", headed ? "" : "skipped\n", skips[i].count,
				  (int)skips[i].probes.size - 1, text_str(&skips[i].probes),
				  status_name(c->skip), cause_name(c->skip_cause));
			utf8_add_clean(out, c->skip_reason, UTF8_KEEP_NOTHING);
			text_add(out, "\n");
			headed = true;
		}
		text_release(&skips[i].probes);
	}
}

static bool runs_any(const struct step *s)
{
	for (size_t k = 0; k < s->count; k++)
		if (!s->cases[k].skip)
			return true;
	return false;
}

static void print_text(const struct plan *p, const struct machine *m, const char *dir)
{
	struct demand d = demand_of(p, m);
	struct text out = {0};
	char bytes[32];

	units_format(bytes, sizeof(bytes), d.journal_bytes, "B");
	text_addf(&out, "suite %s: %zu cases run, %zu are skipped; plan %.12s\n", p->suite, d.runs, d.skips,
		  p->hash);
	text_addf(&out, "time   about %.0f s\n", p->seconds_expected);
	if (d.watts > 0)
		text_addf(&out, "power  up to %.0f W by the GPUs%s\n", d.watts,
			  d.watts_known ? "" : " whose limit is known");
	else
		text_add(&out, "power  CPU only\n");
	add_peak(&out, p);
	text_addf(&out, "disk   about %s in %s\n", bytes, dir);
	for (size_t i = 0; i < p->count; i++) {
		if (!runs_any(&p->steps[i]))
			continue;
		text_addf(&out, "step %zu%s%s\n", i + 1, p->steps[i].order ? ", " : "",
			  step_words[p->steps[i].order]);
		for (size_t k = 0; k < p->steps[i].count; k++)
			if (!p->steps[i].cases[k].skip)
				add_case(&out, &p->steps[i].cases[k]);
	}
	add_skips(&out, p);
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

void running_print_plan(const struct plan *p, const struct machine *m, const char *dir, bool json)
{
	struct memory_need_peak peak;
	json_t *j;

	if (!json) {
		print_text(p, m, dir);
		return;
	}
	j = plan_json(p, m);
	json_object_set_new(j, "seconds_expected", json_real(p->seconds_expected));
	peak = memory_need_peak(p);
	json_object_set_new(j, "need",
			    json_pack("{s:f, s:f, s:I}", "device_bytes", peak.device_bytes, "host_bytes",
				      peak.host_bytes, "cases_unknown", (json_int_t)peak.unknown));
	show_json(j, JSON_INDENT(1));
	json_decref(j);
}
