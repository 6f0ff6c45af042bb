/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/case/context.h"
#include "judge/bound/bound.h"
#include "judge/case/collective_choice.h"
#include "judge/expect/site.h"
#include <math.h>
#include <stdarg.h>
#include "core/text/text.h"
#include "journal/figure/network_bound.h"
#include "journal/figure/figure.h"

#define STREAM_JUDGED 0x1p32 /* bytes of each stream of a memory case that is judged */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const json_t *context_facts(const struct record *r)
{
	const json_t *facts = r->machine ? json_object_get(r->machine, "facts") : NULL;

	return facts ? facts : r->machine;
}

static const struct gpu *gpu_by_pci(const struct judge_context *ctx, const char *pci)
{
	size_t i;

	for (i = 0; pci && i < ctx->gpu_count; i++)
		if (!strcmp(ctx->gpu[i]->pci, pci))
			return ctx->gpu[i];
	return NULL;
}

/* For launched ranks: the GPUs of all ranks of the node. */
static const json_t *gpus_of(const struct record_case *c)
{
	const json_t *all = json_object_get(json_object_get(c->plan, "layout"), "gpus");

	return all ? all : json_object_get(c->plan, "gpus");
}

bool case_uses(const struct record_case *c, const char *pci)
{
	const json_t *gpus = gpus_of(c), *one;
	size_t i;

	json_array_foreach((json_t *)gpus, i, one)
	{
		if (json_is_string(one) && !strcmp(json_string_value(one), pci))
			return true;
	}
	return false;
}

const struct gpu *subject_gpu(const struct subject *s, size_t i)
{
	return gpu_by_pci(s->ctx, json_string_value(json_array_get(gpus_of(s->c), i)));
}

static const char *kind_of(const struct record_case *c, unsigned gpus)
{
	if (!strncmp(c->target, "team", 4))
		return "team";
	if (gpus > 2 || !strncmp(c->target, "node", 4))
		return "node";
	if (gpus == 2)
		return "pair";
	return gpus == 1 || !strncmp(c->target, "gpu", 3) ? "gpu" : "cpu";
}

static void figure_find(struct subject *s)
{
	const struct figure *f = figure_of_limit(s->c->limit);

	s->field = f ? f->field : "";
	s->unit = f ? f->unit : "";
	if (!strcmp(s->type, "int8")) /* int8 operations are not floating-point operations */
		s->unit = "OP/s";
	s->has_figure = *s->field && s->phase && record_number(s->phase, s->field, &s->figure);
}

static void phase_find(struct subject *s)
{
	static const char *const order[] = {"sustained", "burst", "once"};
	size_t i;

	s->phase_name = !strcmp(s->c->phases, "burst") ? "burst" : "sustained";
	for (i = 0; i < COUNT(order); i++) {
		const struct record_phase *p = record_phase(s->c, order[i]);

		if (!p || !p->values)
			continue;
		s->phase = p;
		s->phase_name = p->name;
		return;
	}
}

const struct rule *subject_judging_rule(const struct subject *s)
{
	size_t i;

	for (i = 0; i < s->ctx->e->rule_count; i++) {
		const struct rule *r = &s->ctx->e->rule[i];

		if (r->judges && when_matches(&r->when, subject_word, s))
			return r;
	}
	return NULL;
}

/* True if a range, a ceiling of this machine or a rule can judge such a figure. */
static bool has_reference(const struct subject *s)
{
	const struct expectations *e = s->ctx->e;
	const struct band_row *tie;
	int slot;

	if (s->c->reading || expect_unknown(e, subject_word, s))
		return false;
	for (slot = BAND_RATE; slot <= BAND_EFFICIENCY; slot++)
		if (expect_band(e, (enum band_slot)slot, subject_word, s, &tie) || tie)
			return true;
	if (!s->gpu && strcmp(s->c->probe, "peak") && expect_ceiling(e, subject_word, s))
		return true;
	return subject_judging_rule(s) != NULL;
}

bool subject_trains(const struct subject *s)
{
	return s->c->job && !strcmp(s->c->probe, "train");
}

void subject_of(struct subject *s, const struct judge_context *ctx, const struct record_case *c)
{
	const struct site *site = ctx->site;
	const json_t *gpus = gpus_of(c);
	double cc;

	if (ctx->of_node)
		ctx = &ctx->of_node[c->node];
	*s = (struct subject){
		.ctx = ctx, .site = site, .c = c, .gpu_count = (unsigned)json_array_size(gpus), .type = ""};
	s->gpu = gpu_by_pci(ctx, json_string_value(json_array_get(gpus, 0)));
	s->peer = s->gpu_count == 2 ? gpu_by_pci(ctx, json_string_value(json_array_get(gpus, 1))) : NULL;
	s->kind = kind_of(c, s->gpu_count);
	if (s->gpu) {
		cc = gpu_get(s->gpu, GPU_FACT_cc, 0);
		s->sku = expect_sku(ctx->e, s->gpu);
		s->flops = s->sku ? s->sku : expect_arch(ctx->e, (int)cc);
	}
	if (!strncmp(c->limit, "compute.", 8))
		s->type = c->limit + 8;
	phase_find(s);
	figure_find(s);
	s->require = c->require;
	if (c->require == REQUIRE_KNOWN)
		s->require = has_reference(s) ? REQUIRE_JUDGED : REQUIRE_MEASURED;
}

static bool power_changed(const struct gpu *g)
{
	double now = gpu_get(g, GPU_FACT_power_limit_w, 0),
	       preset = gpu_get(g, GPU_FACT_power_limit_default_w, 0);

	return now > 0 && preset > 0 && (now < 0.995 * preset || now > 1.005 * preset);
}

/* The case's own reading comes before the facts. */
static const char *ecc_word(const struct subject *s)
{
	double on = gpu_get(s->gpu, GPU_FACT_ecc_enabled, -1);

	case_number(s->c, "ecc_enabled", &on);
	return on < 0 ? "unknown" : on > 0 ? "on" : "off";
}

/* "yes" if the product or architecture states it, or the case read a remapping field. */
static const char *remapping_word(const struct subject *s)
{
	double value;

	return (s->flops && s->flops->fact[SKU_row_remapping].value > 0) ||
			       case_number(s->c, "remap_pending", &value) ||
			       case_number(s->c, "remap_failed", &value)
		       ? "yes"
		       : "no";
}

static const char *gpu_word(const struct subject *s, const char *word, char *buffer, size_t size)
{
	const struct gpu *g = s->gpu;

	if (!strcmp(word, "sku"))
		return s->sku ? s->sku->name : NULL;
	if (!strcmp(word, "arch")) {
		snprintf(buffer, size, "sm_%.0f", gpu_get(g, GPU_FACT_cc, 0));
		return buffer;
	}
	if (!strcmp(word, "power_limit"))
		return power_changed(g) && !site_states_power(s->site, g) ? "changed" : "default";
	if (!strcmp(word, "stated_power_limit"))
		return site_states_power(s->site, g) ? "yes" : "no";
	if (!strcmp(word, "stated_sm_clock"))
		return s->site && s->site->sm_clock_hz > 0 ? "yes" : "no";
	if (!strcmp(word, "mig"))
		return gpu_get(g, GPU_FACT_mig_mode, 0) > 0 ? "on" : "off";
	if (!strcmp(word, "ecc"))
		return ecc_word(s);
	if (!strcmp(word, "row_remapping"))
		return remapping_word(s);
	if (!strcmp(word, "virtual_gpu"))
		return gpu_get(g, GPU_FACT_virtualization, 0) >= 2 ? "yes" : "no";
	return NULL;
}

/* True if other GPUs worked at the same time. */
static bool siblings_busy(const struct subject *s)
{
	const struct record *r = s->ctx->record;

	if (!s->c->lockstep)
		return s->c->together;
	for (size_t i = 0; i < r->case_count; i++)
		if (&r->cases[i] != s->c && r->cases[i].step == s->c->step && r->cases[i].begun &&
		    !strcmp(r->cases[i].key, s->c->key))
			return true;
	return false;
}

static const char *number_text(double value, char *buffer, size_t size)
{
	snprintf(buffer, size, "%.17g", value);
	return buffer;
}

/* Bytes of each stream of a memory case: the measured value, else the option. Before a run, size 0 stands for
 * the size that a judged case would take on this device. */
static const char *stream_bytes(const struct subject *s, char *buffer, size_t size)
{
	const char *asked = record_option(s->c, "size");
	double value;

	if (case_number(s->c, "stream_bytes", &value))
		return number_text(value, buffer, size);
	if (asked && strcmp(asked, "0"))
		return asked;
	if (!asked || !s->ctx->ahead || !s->gpu)
		return NULL;
	return number_text(fmin(STREAM_JUDGED, gpu_get(s->gpu, GPU_FACT_memory_bytes, 0) / 4), buffer, size);
}

/* Smallest of m, n and k of a GEMM. It limits how often each element is reused. */
static const char *least_dimension(const struct subject *s)
{
	static const char *const names[] = {"m", "n", "k"};
	const char *least = NULL, *text;
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		text = record_option(s->c, names[i]);
		if (!text)
			return NULL;
		if (!least || strtod(text, NULL) < strtod(least, NULL))
			least = text;
	}
	return least;
}

/* Major version from the case's library, such as "cuBLASLt 13.1.0 /usr/lib/..". Before a run: from the
 * machine's version of the case's engine. */
static const char *library_major(const struct subject *s, char *buffer, size_t size)
{
	const json_t *software = json_object_get(context_facts(s->ctx->record), "software");
	const char *text = case_text(s->c, "library"), *digits;
	size_t n;

	if (text)
		text = strchr(text, ' ');
	else if (s->ctx->ahead)
		text = json_string_value(json_object_get(json_object_get(software, s->c->engine), "version"));
	if (!text)
		return NULL;
	digits = text + strspn(text, " ");
	n = strspn(digits, "0123456789");
	if (!n || n >= size)
		return NULL;
	memcpy(buffer, digits, n);
	buffer[n] = '\0';
	return buffer;
}

/* The reported number, else the planned one. */
static double ranks_of(const struct subject *s)
{
	const json_t *planned = json_object_get(s->c->plan, "ranks");
	double told;

	if (case_number(s->c, "ranks", &told))
		return told;
	if (planned)
		return json_number_value(planned);
	return s->gpu_count > 1 ? s->gpu_count : 1;
}

/* Number of nodes that the ranks run on. NULL for a team whose plan does not say where its ranks run. */
static const char *node_count(const struct subject *s, char *buffer, size_t size)
{
	const json_t *layout = json_object_get(s->c->plan, "layout");
	struct network_bound nodes;

	if (!layout && !strcmp(s->kind, "team"))
		return NULL;
	return number_text(network_bound_read(&nodes, layout) ? nodes.nodes : 1, buffer, size);
}

const char *subject_word(const void *subject, const char *word, char *buffer, size_t size)
{
	const struct subject *s = subject;
	const char *found = NULL;
	double value;

	if (!strcmp(word, "probe"))
		return s->c->probe;
	if (!strcmp(word, "engine"))
		return s->c->engine;
	if (!strcmp(word, "limit"))
		return s->c->limit;
	if (!strcmp(word, "target"))
		return s->kind;
	if (!strcmp(word, "phase"))
		return s->phase_name;
	if (!strcmp(word, "phases"))
		return s->c->phases;
	if (!strcmp(word, "siblings"))
		return siblings_busy(s) ? "busy" : "idle";
	if (!strcmp(word, "gpus"))
		return number_text((double)s->ctx->gpu_count, buffer, size);
	if (!strcmp(word, JUDGE_SERVER_GPUS))
		return case_number(s->c, word, &value) ? number_text(value, buffer, size) : NULL;
	if (!strcmp(word, "ranks"))
		return number_text(ranks_of(s), buffer, size);
	if (!strcmp(word, "nodes"))
		return node_count(s, buffer, size);
	if (!strcmp(word, "library_major"))
		return library_major(s, buffer, size);
	if (!strcmp(word, "stream_bytes"))
		return stream_bytes(s, buffer, size);
	if (!strcmp(word, "least_dimension"))
		return least_dimension(s);
	if (!strcmp(word, "beside"))
		return s->gpu ? NULL : traffic_of_ceiling(s->c, buffer, size);
	if (!strcmp(word, "store") || !strcmp(word, "variant"))
		found = case_text(s->c, word); /* the reported value, else the option */
	if (!strcmp(word, "algorithm") || !strcmp(word, "protocol") || !strcmp(word, "nvls"))
		return choice_word(s, word, buffer, size);
	if (!strcmp(word, "nvlinks") || !strcmp(word, "nvlink_gen") || !strcmp(word, "pcie_gen"))
		return choice_link_word(s, word, buffer, size);
	if (!strcmp(word, "fabric_state") && case_number(s->c, word, &value))
		return number_text(value, buffer, size);
	if (!found && s->gpu)
		found = gpu_word(s, word, buffer, size);
	return found ? found : record_option(s->c, word);
}

bool case_number(const struct record_case *c, const char *field, double *out)
{
	const struct record_phase *once = record_phase(c, "once");
	size_t i;

	if (once && record_number(once, field, out))
		return true;
	for (i = 0; i < c->phase_count; i++)
		if (record_number(&c->phase[i], field, out))
			return true;
	return false;
}

const char *case_text(const struct record_case *c, const char *field)
{
	const char *found = NULL;
	size_t i;

	for (i = 0; i < c->phase_count && !found; i++)
		found = record_text(&c->phase[i], field);
	return found;
}

bool subject_number(const struct subject *s, const char *field, double *out)
{
	return (s->phase && record_number(s->phase, field, out)) || case_number(s->c, field, out);
}

bool case_sound(const struct record_case *c)
{
	return case_right(c) && !record_tries(c);
}

bool case_right(const struct record_case *c)
{
	double wrong;

	return !c->skipped && c->ended && c->ending == ENDING_DONE && c->status == STATUS_OK &&
	       !(case_number(c, "wrong_count", &wrong) && wrong > 0);
}

const struct series *gpu_series(const struct record *r, const char *pci, const char *signal)
{
	char source[40];

	snprintf(source, sizeof(source), "gpu:%s", pci);
	return record_series(r, source, signal);
}

bool subject_span(const struct subject *s, const char *signal, struct span *out)
{
	const struct series *series;
	char source[40];

	if (!s->phase || !s->phase->has_window)
		return false;
	snprintf(source, sizeof(source), s->gpu ? "gpu:%s" : "host", s->gpu ? s->gpu->pci : "");
	series = record_series(s->ctx->record, source, signal);
	return series && series_over(series, s->phase->t0_ns, s->phase->t1_ns, out) == STATUS_OK;
}

bool subject_gpm(const struct subject *s, const char *name, double *out)
{
	const struct series *series = NULL;
	char text[40];

	if (!s->phase)
		return false;
	if (s->gpu && s->phase->has_window) {
		snprintf(text, sizeof(text), "gpm_%s_share", name);
		series = gpu_series(s->ctx->record, s->gpu->pci, text);
	}
	if (series)
		return series_whole(series, s->phase->t0_ns, s->phase->t1_ns, SERIES_GPM_LAG_NS, out);
	snprintf(text, sizeof(text), "%s_active_share", name);
	return record_number(s->phase, text, out);
}

/* Tolerance between the cycles per iteration that were counted and those of the window. */
#define COUNTED_AGREE 0.03

bool subject_counter(const struct subject *s, const char *name, double *out)
{
	double cycles, clock, ns;
	char text[48];

	if (!s->phase || !record_number(s->phase, "counter_sm_cycles", &cycles) ||
	    !record_number(s->phase, "clock_hz", &clock) || !record_number(s->phase, "time_ns_mean", &ns) ||
	    fabs(cycles / (clock * ns * 1e-9) - 1) > COUNTED_AGREE)
		return false;
	snprintf(text, sizeof(text), "counter_%s", name);
	return record_number(s->phase, text, out);
}

bool subject_beyond_cache(const struct subject *s)
{
	double l2 = s->gpu ? gpu_get(s->gpu, GPU_FACT_l2_bytes, 0x1p27) : 0x1p27;

	return s->c->work_read + s->c->work_write >= 8 * l2;
}

void finding(struct judgement *j, enum verdict verdict, enum cause cause, const char *format, ...)
{
	va_list args;

	if (*j->reason && verdict_weight(verdict) <= verdict_weight(j->verdict))
		return;
	j->verdict = verdict;
	j->cause = cause;
	va_start(args, format);
	vsnprintf(j->reason, sizeof(j->reason), format, args);
	va_end(args);
}

void remark(struct judgement *j, enum cause cause)
{
	if (j->cause == CAUSE_NONE)
		j->cause = cause;
}
