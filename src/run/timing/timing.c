/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that all phases share: windows, their events, their values. */
#include "run/timing/phases.h"
#include <errno.h>
#include <math.h>
#include "core/math/stats.h"
#include "run/worker/ranks.h"

enum { CHUNK = 4096 /* samples per event */, ROOM = 1 << 14, ROOM_MAX = 1 << 20 };

enum status timing_init(struct timing *t, struct error *err)
{
	double samples = fmax(t->c->seconds, t->c->seconds_capped) * 1e9 / METER_SAMPLE_NS;

	t->batch = 1;
	t->room = samples < ROOM ? ROOM : samples < ROOM_MAX ? (size_t)samples + ROOM : ROOM_MAX;
	t->sample = calloc(t->room, sizeof(*t->sample));
	return t->sample ? STATUS_OK : error_errno(err, ENOMEM, "room for %zu samples", t->room);
}

void timing_release(struct timing *t)
{
	free(t->sample);
	t->sample = NULL;
}

struct window timing_window(const struct timing *t)
{
	return (struct window){.sample = t->sample, .room = t->room};
}

void timing_wants_links(const struct timing *t, struct window *w)
{
	bool moves = t->work.link_bytes > 0;

	w->link = moves && t->c->target.kind == TARGET_GPU;
	w->nvlink = moves && t->c->target.kind >= TARGET_PAIR;
}

bool timing_stopped(const struct timing *t)
{
	return t->w->stop && *t->w->stop;
}

const char *timing_judged(const struct timing *t)
{
	return t->c->phases == PHASES_HEADLINE ? "sustained" : "burst";
}

enum status timing_cancelled(struct error *err)
{
	return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request");
}

/* Takes `body`. */
static enum status emit(const struct timing *t, const char *type, json_t *body, struct error *err)
{
	enum status st;

	if (!body)
		return error_errno(err, ENOMEM, "an event of type %s", type);
	st = t->w->emit.event(t->w->emit.arg, type, body, err);
	json_decref(body);
	return st;
}

enum status timing_at(const struct timing *t, const char *phase, struct error *err)
{
	return emit(t, "at", json_pack("{s:i, s:s}", "case", (int)t->c->id, "phase", phase), err);
}

enum status timing_phase(const struct timing *t, const char *phase, uint64_t t0_ns, uint64_t t1_ns,
			 struct error *err)
{
	return emit(t, "phase",
		    json_pack("{s:i, s:s, s:I, s:I}", "case", (int)t->c->id, "phase", phase, "t0",
			      (json_int_t)t0_ns, "t1", (json_int_t)t1_ns),
		    err);
}

enum status timing_samples(const struct timing *t, const char *phase, const struct window *w,
			   struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < w->count; i += CHUNK) {
		json_t *ns = json_array();

		for (size_t k = i; k < w->count && k < i + CHUNK; k++)
			json_array_append_new(ns,
					      /* json_real() refuses values that are not finite */
					      json_real(w->sample[k].ns));
		st = emit(t, "samples",
			  json_pack("{s:i, s:s, s:I, s:o}", "case", (int)t->c->id, "phase", phase, "batch",
				    (json_int_t)w->sample[i].batch, "ns", ns),
			  err);
	}
	return st;
}

enum status timing_result(const struct timing *t, const char *phase, const struct result *r,
			  struct error *err)
{
	json_t *values = result_json(r);

	if (!values)
		return error_errno(err, ENOMEM, "the values of %s", phase);
	return emit(t, "result",
		    json_pack("{s:i, s:s, s:o}", "case", (int)t->c->id, "phase", phase, "values", values),
		    err);
}

double timing_granted(const struct timing *t)
{
	const struct cpu *cpu = t->w->machine ? machine_cpu(t->w->machine) : NULL;

	return cpu && cpu->quota > 0 && cpu->quota < t->threads ? cpu->quota / t->threads : 1;
}

double window_mean_ns(const struct window *w, size_t from, size_t to)
{
	double ns = 0, iterations = 0;

	for (size_t i = from; i < to; i++) {
		ns += w->sample[i].ns * (double)w->sample[i].batch;
		iterations += (double)w->sample[i].batch;
	}
	return iterations > 0 ? ns / iterations : 0;
}

static void rate(struct result *r, const struct field *f, double work, double mean_ns)
{
	if (work > 0 && mean_ns > 0)
		result_f64(r, f, work / (mean_ns * 1e-9));
}

static void spread_values(const struct window *w, struct result *r)
{
	double *ns = malloc(w->count * sizeof(*ns));
	struct stats s;

	if (!ns)
		return; /* the values are absent */
	for (size_t i = 0; i < w->count; i++)
		ns[i] = w->sample[i].ns;
	s = stats_of(ns, w->count);
	result_f64(r, &field_time_ns_median, s.median);
	result_f64(r, &field_time_ns_min, s.min);
	result_f64(r, &field_time_ns_p05, s.p05);
	result_f64(r, &field_time_ns_p99, s.p99);
	result_f64(r, &field_time_ns_max, s.max);
	if (w->count >= 2 * PHASE_BATCHES && s.mean > 0)
		result_f64(r, &field_half_width_share,
			   stats_batch_half_width(ns, w->count, PHASE_BATCHES) / s.mean);
	free(ns);
}

static void nvlink_values(const struct window *w, struct result *r)
{
	if (w->has_nvlink) {
		result_u64(r, &field_nvlink_tx_bytes, w->nvlink_bytes.tx);
		result_u64(r, &field_nvlink_rx_bytes, w->nvlink_bytes.rx);
		result_u64(r, &field_nvlink_raw_tx_bytes, w->nvlink_bytes.raw_tx);
		result_u64(r, &field_nvlink_raw_rx_bytes, w->nvlink_bytes.raw_rx);
	}
	if (w->has_nvlink_errors)
		result_u64(r, &field_nvlink_errors_new, w->nvlink_errors);
	if (w->nvlink_errors)
		result_text(r, &field_nvlink_errors_place, w->nvlink_place);
}

void timing_values(const struct timing *t, const struct window *w, struct result *r)
{
	double mean = window_mean_ns(w, 0, w->count), wall = (double)(w->t1_ns - w->t0_ns);
	uint64_t iterations = 0;

	if (!w->count)
		return;
	for (size_t i = 0; i < w->count; i++)
		iterations += w->sample[i].batch;
	spread_values(w, r);
	result_f64(r, &field_time_ns_mean, mean);
	result_u64(r, &field_samples, w->count);
	result_u64(r, &field_batch, w->sample[0].batch);
	result_u64(r, &field_iterations, iterations);
	result_f64(r, &field_window_s, w->sample[w->count - 1].end_ns * 1e-9);
	rate(r, &field_flop_rate, t->work.flop, mean);
	rate(r, &field_byte_rate, t->work.read_bytes + t->work.write_bytes, mean);
	rate(r, &field_link_rate, t->work.link_bytes, mean);
	rate(r, &field_message_rate, t->work.messages, mean);
	if (t->work.messages > 0 && mean > 0)
		result_f64(r, &field_latency_ns, mean / t->work.messages);
	if (w->has_clock) {
		result_f64(r, &field_clock_hz, w->clock_hz);
		if (!t->threads)
			result_f64(r, &field_clock_spread_share, w->clock_spread_share);
	}
	if (w->has_link) {
		result_u64(r, &field_pcie_gen_loaded, w->link_gen);
		result_u64(r, &field_pcie_width_loaded, w->link_width);
	}
	nvlink_values(w, r);
	if (t->threads)
		result_u64(r, &field_threads, t->threads);
	if (t->threads && w->has_cpu_time && wall > 0)
		result_f64(r, &field_cpu_share, (double)w->cpu_time_ns / (t->threads * wall));
	if (t->threads && w->has_steal && wall > 0)
		result_f64(r, &field_steal_share, (double)w->steal_ns / (t->threads * wall));
	if (t->variant)
		result_text(r, &field_variant, t->variant);
	timing_rank_values(w, r);
}

static void wrong_values(const struct timing *t, const struct wrong *wrong, struct result *r)
{
	char place[256];

	result_u64(r, &field_wrong_checked, wrong->checked);
	result_u64(r, &field_wrong_total, wrong->total);
	result_u64(r, &field_wrong_count, wrong->count);
	if (!wrong->count)
		return;
	snprintf(place, sizeof(place), "%s%s%s: expected %.9g, found %.9g", t->variant ? t->variant : "",
		 t->variant ? ", " : "", wrong->place, wrong->expected, wrong->found);
	result_text(r, &field_wrong_place, place);
	if (wrong->suspect)
		result_u64(r, &field_wrong_suspect, wrong->suspect - 1);
	if (!wrong->ranks)
		return;
	result_u64(r, &field_wrong_ranks, wrong->ranks);
	result_u64(r, &field_wrong_rank, wrong->rank);
}

/* The first wrong element as the case's message, unless the probe has a message of its own. */
static enum status mismatch(const struct wrong *wrong, struct error *err)
{
	bool nan = wrong->nan || isnan(wrong->found);

	return error_set_cause(err, STATUS_MISMATCH, nan ? CAUSE_NAN : CAUSE_WRONG_RESULT,
			       "%llu of %llu elements are wrong, the first at %s: expected %.9g, found %.9g",
			       (unsigned long long)wrong->count, (unsigned long long)wrong->total,
			       wrong->place, wrong->expected, wrong->found);
}

enum status timing_verify(const struct timing *t, struct error *err)
{
	const struct probe *p = t->c->probe;
	struct wrong wrong = {0};
	uint64_t t0 = clock_now_ns(t->w->clock);
	struct error own = {0}; /* the message of a mismatch must come after its figures */
	struct result *r;
	enum status st, sent;

	if (!p->verify)
		return STATUS_OK;
	st = timing_at(t, "verify", err);
	if (st)
		return st;
	st = ranks_verify(t->part, &wrong, &own);
	r = result_create();
	if (!r)
		return error_errno(err, ENOMEM, "the values of verification");
	wrong_values(t, &wrong, r);
	sent = timing_phase(t, "verify", t0, clock_now_ns(t->w->clock), err);
	if (!sent && (!st || st == STATUS_MISMATCH))
		sent = timing_result(t, "once", r, err);
	result_destroy(r);
	if (sent)
		return sent;
	if (st == STATUS_MISMATCH && !own.status)
		return mismatch(&wrong, err);
	if (own.status && err && !err->status)
		*err = own;
	return st;
}
