/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the sampler's telemetry. If the sampler stalls, sends invalid lines or dies, the run continues, and
 * the missing values are absent. */
#include <errno.h>
#include <poll.h>
#include "core/math/plausible_range.h"
#include "machine/machine.h"
#include "run/supervisor/supervisor.h"
#include "telemetry/telemetry.h"
#include "vendor/nvml.h"

#define SLACK_NS 50000000u /* a window is complete when telemetry has passed its end by this time */
/* or when this time has passed since the window's end: the reader waits no longer */
#define PATIENCE_NS 2000000000u
#define BLOCK_NS 1000000000u  /* longest time that readings wait to be journaled together */
#define KEEP_NS 120000000000u /* older readings are dropped from memory; the journal has them */

static const struct series *find(const struct series *series, size_t count, const char *source,
				 const char *signal)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(series[i].source, source) && !strcmp(series[i].signal, signal))
			return &series[i];
	return NULL;
}

static bool span_of(const struct series *series, size_t count, const char *source, const char *signal,
		    uint64_t t0, uint64_t t1, struct span *out)
{
	const struct series *s = find(series, count, source, signal);

	return s && t1 > t0 && !series_over(s, t0, t1, out);
}

double telemetry_reader_mean(const struct series *series, size_t count, const char *source,
			     const char *signal, uint64_t t0, uint64_t t1)
{
	struct span span;

	return span_of(series, count, source, signal, t0, t1, &span) ? span.mean : 0;
}

/* Power from the energy counter's own ticks: docs/explanation/methods/measuring.md, "Energy". Absent with
 * fewer than five ticks, and if the counter went back or stood still. */
static void energy_values(const struct series *s, uint64_t t0, uint64_t t1, struct result *out)
{
	double seconds = (double)(t1 - t0) * 1e-9;
	struct span found, *span = &found;

	if (!s || t1 <= t0 || series_over(s, t0, t1, span) || span->ticks < 5 || span->went_back ||
	    series_still_s(s, t0, t1) >= SERIES_STUCK_S)
		return;
	result_f64(out, &field_power_w, span->rate);
	result_f64(out, &field_energy_j, span->rate * seconds);
}

static void reason_values(const struct span *span, struct result *out)
{
	result_u64(out, &field_clock_reasons_and, span->bits_and);
	result_u64(out, &field_clock_reasons_or, span->bits_or);
}

void telemetry_reader_values(const struct series *series, size_t count, const char *source, uint64_t t0,
			     uint64_t t1, struct result *out)
{
	/* Means; `factor` converts to the field's unit. */
	static const struct {
		const char *signal;
		const struct field *field;
		double factor;
	} means[] = {
		{"sm_clock_mhz", &field_clock_nvml_hz, 1e6},
		{"memory_clock_mhz", &field_memory_clock_hz, 1e6},
		{"power_w", &field_power_integral_w, 1},
	};
	/* A GPM reading covers the interval since the previous one. So only whole intervals within the window
	 * count. */
	static const struct {
		const char *signal;
		const struct field *field;
	} whole[] = {{"gpm_tensor_share", &field_tensor_active_share},
		     {"gpm_fp32_share", &field_fp32_active_share},
		     {"gpm_fp64_share", &field_fp64_active_share},
		     {"gpm_sm_share", &field_sm_active_share},
		     {"gpm_dram_share", &field_dram_active_share}};
	static const struct {
		const char *signal;
		const struct field *field;
	} highest[] = {{"temperature_c", &field_temperature_c},
		       {"temperature_memory_c", &field_temperature_memory_c}};
	static const struct {
		const char *signal;
		const struct field *field;
	} shares[] = {{"violation_power_s", &field_violation_power_share},
		      {"violation_thermal_s", &field_violation_thermal_share}};
	double seconds = (double)(t1 - t0) * 1e-9;
	const struct series *gpm, *energy = find(series, count, source, "energy_j");
	struct span span;
	double mean;

	for (size_t i = 0; i < sizeof(means) / sizeof(means[0]); i++)
		if (span_of(series, count, source, means[i].signal, t0, t1, &span))
			result_f64(out, means[i].field, span.mean * means[i].factor);
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		gpm = find(series, count, source, whole[i].signal);
		if (gpm && series_whole(gpm, t0, t1, SERIES_GPM_LAG_NS, &mean))
			result_f64(out, whole[i].field, mean);
	}
	for (size_t i = 0; i < sizeof(highest) / sizeof(highest[0]); i++)
		if (span_of(series, count, source, highest[i].signal, t0, t1, &span))
			result_f64(out, highest[i].field, span.max);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		if (span_of(series, count, source, shares[i].signal, t0, t1, &span) && span.readings > 1 &&
		    !span.went_back)
			result_f64(out, shares[i].field,
				   span.ticks > 1 ? span.rate : (span.last - span.first) / seconds);
	if (span_of(series, count, source, "clock_reasons", t0, t1, &span))
		reason_values(&span, out);
	energy_values(energy ? energy : find(series, count, source, "cpu_energy_j"), t0, t1, out);
}

/* A run of a day must not fill the memory. */
static void forget_old(struct series *s)
{
	size_t half = s->count / 2;

	if (s->count < 65536 || s->t_ns[s->count - 1] - s->t_ns[half] < KEEP_NS)
		return;
	memmove(s->t_ns, s->t_ns + half, (s->count - half) * sizeof(*s->t_ns));
	memmove(s->value, s->value + half, (s->count - half) * sizeof(*s->value));
	s->count -= half;
}

static void nvml_fell_silent(struct run *r, unsigned gpu, int code)
{
	enum cause cause;

	nvml_status((nvmlReturn_t)code, &cause);
	health_silent(r, gpu, nvml_code_text(code), cause);
}

/* Passes temperatures and clock reasons to the GPU's thermal guard, and NVML errors to gpu_health.c. */
static void tell_guard(struct run *r, const struct series *s, uint64_t t_ns, double value)
{
	if (strncmp(s->source, "gpu:", 4))
		return;
	for (unsigned g = 0; g < RUN_GPUS && g < machine_gpu_count(r->machine); g++)
		if (strcmp(machine_gpu(r->machine, g)->pci, s->source + 4))
			continue;
		else if (!strcmp(s->signal, "nvml_error"))
			nvml_fell_silent(r, g, value > 0 && value < 1e6 ? (int)value : 999);
		else
			thermal_guard_reading(&r->watch.guard[g], s->signal, t_ns, value);
}

static void take_reading(struct run *r, struct series *s, uint64_t t_ns, double value)
{
	series_add(s, t_ns, value, NULL);
	tell_guard(r, s, t_ns, value);
}

/* Writes the waiting readings to the journal, one line per source. */
static void write_block(struct run *r)
{
	json_t *body;

	while ((body = telemetry_block_take(&r->watch.block)))
		run_journal(r, JOURNAL_TELEMETRY, body);
}

/* Takes a line of the sampler. A line that is not telemetry is ignored and does not end the run. */
static bool take_line(void *arg, const char *line, size_t size)
{
	struct run *r = arg;
	struct watch *w = &r->watch;
	json_t *body = json_loadb(line, size, 0, NULL);
	const char *source = json_string_value(json_object_get(body, "source"));
	const char *signal = json_string_value(json_object_get(body, "signal"));
	const json_t *at = json_object_get(body, "at"), *v = json_object_get(body, "v");
	enum signal_kind kind = telemetry_block_kind(body);
	struct series *s;

	if (!json_is_array(at) || json_array_size(at) != json_array_size(v) ||
	    series_find(&s, &w->series, &w->series_count, source, signal, kind, NULL)) {
		log_debug(r->o->log, LOG_TOPIC_RUN, "the sampler wrote a line that is not telemetry");
		json_decref(body);
		return true;
	}
	w->heard_ns = clock_now_ns(r->o->clock);
	w->stalled = false;
	if (!w->block.readings)
		w->block_since_ns = w->heard_ns;
	for (size_t i = 0; i < json_array_size(at); i++) {
		const json_t *time = json_array_get(at, i), *value = json_array_get(v, i);

		if (!json_is_integer(time) || json_integer_value(time) < 0 || !json_is_number(value))
			continue;
		take_reading(r, s, (uint64_t)json_integer_value(time), json_number_value(value));
		telemetry_block_add(&w->block, source, signal, kind, (uint64_t)json_integer_value(time),
				    json_number_value(value));
	}
	forget_old(s);
	json_decref(body);
	return true;
}

/* Whether any signal of this source has passed the time. */
static bool passed(const struct watch *w, const char *source, uint64_t t_ns)
{
	for (size_t i = 0; i < w->series_count; i++) {
		const struct series *s = &w->series[i];

		if (!strcmp(s->source, source) && s->count && s->t_ns[s->count - 1] >= t_ns)
			return true;
	}
	return false;
}

/* Warns once per signal about a zero clock or zero power during assay's load, and names the vendor's
 * function. telemetry_reader_values() leaves such readings out. */
static void tell_zero(struct run *r, const struct telemetry_reader_window *w)
{
	struct watch *watch = &r->watch;

	for (size_t i = 0; i < watch->series_count; i++) {
		const struct series *s = &watch->series[i];
		const struct plausible *p = plausible_of(s->signal);
		size_t k = series_lower_bound(s, w->t0_ns);

		if (!p || s->zero_told || strcmp(s->source, w->source))
			continue;
		for (; k < s->count && s->t_ns[k] <= w->t1_ns; k++)
			if (!plausible_under_load(s->signal, s->value[k]))
				break;
		if (k == s->count || s->t_ns[k] > w->t1_ns)
			continue;
		watch->series[i].zero_told = true;
		log_warn(r->o->log, LOG_TOPIC_RUN,
			 "%s: %s returned %.6g%s%s as %s under load, which is impossible: "
			 "such readings are left out",
			 s->source, p->function, s->value[k], *p->unit ? " " : "", p->unit, s->signal);
	}
}

static void settle_window(struct run *r, const struct telemetry_reader_window *w)
{
	struct result *out = result_create();
	json_t *values;

	if (!out)
		return; /* the values are absent */
	tell_zero(r, w);
	telemetry_reader_values(r->watch.series, r->watch.series_count, w->source, w->t0_ns, w->t1_ns, out);
	values = result_json(out);
	if (json_object_size(values))
		run_journal(r, JOURNAL_RESULT,
			    json_pack("{s:i, s:s, s:O}", "case", (int)w->id, "phase", w->phase, "values",
				      values));
	json_decref(values);
	result_destroy(out);
}

static void settle_windows(struct run *r, bool all)
{
	struct watch *w = &r->watch;
	uint64_t now = clock_now_ns(r->o->clock);
	size_t kept = 0;

	for (size_t i = 0; i < w->window_count; i++) {
		const struct telemetry_reader_window *x = &w->window[i];

		if (all || passed(w, x->source, x->t1_ns + SLACK_NS) || now - x->since_ns > PATIENCE_NS)
			settle_window(r, x);
		else
			w->window[kept++] = *x;
	}
	w->window_count = kept;
}

void telemetry_reader_begin(const struct run *r)
{
	if (r->watch.alive)
		sampler_align(&r->watch.sampler);
}

void telemetry_reader_want(struct run *r, const struct bench_case *c, const char *phase, uint64_t t0_ns,
			   uint64_t t1_ns)
{
	struct watch *w = &r->watch;
	struct telemetry_reader_window *grown;

	if (!w->alive)
		return;
	grown = realloc(w->window, (w->window_count + 1) * sizeof(*grown));
	if (!grown)
		return; /* the values are absent */
	w->window = grown;
	grown += w->window_count++;
	*grown = (struct telemetry_reader_window){
		.id = c->id, .t0_ns = t0_ns, .t1_ns = t1_ns, .since_ns = clock_now_ns(r->o->clock)};
	text_copy(grown->phase, sizeof(grown->phase), phase);
	if (c->target.kind == TARGET_GPU || c->target.kind == TARGET_PAIR) /* pair: the GPU that is timed */
		snprintf(grown->source, sizeof(grown->source), "gpu:%s",
			 machine_gpu(r->machine,
				     c->target.gpu[c->target.kind == TARGET_PAIR ? c->engine->seat : 0])
				 ->pci);
	else
		text_copy(grown->source, sizeof(grown->source), "host");
}

static unsigned watched_gpus(const struct run *r, const char **pci, unsigned room)
{
	bool used[RUN_GPUS];
	unsigned count = 0;

	run_used_gpus(r, used);
	for (unsigned g = 0; g < RUN_GPUS && count < room; g++)
		if (used[g])
			pci[count++] = machine_gpu(r->machine, g)->pci;
	return count;
}

static void start_sampler(struct run *r)
{
	const char *pci[RUN_GPUS];
	struct telemetry_spec spec = {
		.gpu_pci = pci, .gpu_count = watched_gpus(r, pci, RUN_GPUS), .host = true};
	struct error err = {0};

	if (sampler_start(&r->watch.sampler, &spec, &err)) {
		log_warn(r->o->log, LOG_TOPIC_RUN, "no telemetry: %s", err.text);
		return;
	}
	r->watch.alive = true;
	r->watch.heard_ns = r->watch.life.started_ns = clock_now_ns(r->o->clock);
}

void telemetry_reader_start(struct run *r)
{
	r->watch.sampler = (struct process){.channel = -1, .output = -1};
	if (r->o->sample)
		start_sampler(r);
}

/* What the missing telemetry means for GPU cases; "": no case uses a GPU. */
static const char *left_dark(const struct run *r)
{
	bool used[RUN_GPUS], any = false;

	run_used_gpus(r, used);
	for (unsigned g = 0; g < RUN_GPUS; g++)
		any = any || used[g];
	return any ? "; later GPU cases without clock, temperature or clock reasons get the verdict unknown"
		   : "";
}

/* The sampler starts again, unless it dies over and over. */
static void lose(struct run *r, const char *why)
{
	struct watch *w = &r->watch;

	if (sampler_died(&w->life, clock_now_ns(r->o->clock)))
		log_warn(r->o->log, LOG_TOPIC_RUN, "telemetry has a gap: %s; it starts again in %u s", why,
			 1u << (w->life.deaths - 1));
	else
		log_warn(r->o->log, LOG_TOPIC_RUN, "telemetry ends here: %s %u times%s", why, w->life.deaths,
			 left_dark(r));
	write_block(r);
	settle_windows(r, true);
	sampler_stop(&w->sampler);
	process_release(&w->sampler);
	lines_release(&w->in);
	w->alive = false;
}

static void start_again(struct run *r)
{
	struct sampler_life *life = &r->watch.life;

	if (!life->again_ns || clock_now_ns(r->o->clock) < life->again_ns || run_stopping(r))
		return;
	life->again_ns = 0;
	start_sampler(r);
}

void telemetry_reader_read(struct run *r)
{
	struct watch *w = &r->watch;

	if (!w->alive) {
		start_again(r);
		return;
	}
	if (lines_read(&w->in, w->sampler.channel, take_line, r) != LINES_MORE) {
		lose(r, "the sampler died or wrote invalid lines");
		return;
	}
	if (!w->stalled && clock_now_ns(r->o->clock) - w->heard_ns > PATIENCE_NS) {
		w->stalled = true;
		log_warn(r->o->log, LOG_TOPIC_RUN,
			 "the sampler has been silent for two seconds; the run goes on%s", left_dark(r));
	}
	if (w->block.readings && clock_now_ns(r->o->clock) - w->block_since_ns >= BLOCK_NS)
		write_block(r);
	settle_windows(r, false);
}

void telemetry_reader_write(struct run *r)
{
	telemetry_reader_read(r);
	write_block(r);
}

void telemetry_reader_stop(struct run *r)
{
	struct watch *w = &r->watch;
	uint64_t end = clock_now_ns(r->o->clock) + 300000000u;

	while (w->alive && w->window_count && clock_now_ns(r->o->clock) < end && !run_stopping(r)) {
		struct pollfd in = {.fd = w->sampler.channel, .events = POLLIN};

		poll(&in, 1, 20);
		telemetry_reader_read(r);
	}
	write_block(r);
	settle_windows(r, true);
	if (w->alive) {
		sampler_stop(&w->sampler);
		process_release(&w->sampler);
	}
	w->alive = false;
	for (size_t i = 0; i < w->series_count; i++)
		series_release(&w->series[i]);
	free(w->series);
	telemetry_block_release(&w->block);
	free(w->window);
	lines_release(&w->in);
}
