/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/eval/show.h"
#include <math.h>
#include "cmd/shared/engine_memory.h"
#include "cmd/shared/show.h"

/* Writes "12.345 +/- 0.012", or only the value if the half-width is unknown; "-": no value. */
static const char *figure_text(char *out, size_t size, const char *format, struct eval_figure f)
{
	int at;

	if (!isfinite(f.value)) {
		snprintf(out, size, "-");
		return out;
	}
	at = snprintf(out, size, format, f.value);
	if (isfinite(f.half_width) && at > 0 && (size_t)at < size)
		snprintf(out + at, size - (size_t)at, " +/- %.*f", strchr(format, '2') ? 2 : 3, f.half_width);
	return out;
}

static double rate_of(const struct eval_measured *m)
{
	return m->seconds > 0 ? (double)m->tokens / m->seconds : 0;
}

static const char *word_of(const struct eval_results *r, size_t i)
{
	const char *word = eval_verdict_word(&r->verdict[i]);

	return !i ? "reference" : strcmp(word, "fail") ? word : "FAIL";
}

static void add_row(struct text *out, const struct eval_results *r, size_t i, int width)
{
	const struct eval_measured *m = &r->measured[i];
	const struct eval_verdict *v = &r->verdict[i];
	const struct eval_figure none = {NAN, INFINITY};
	char perplexity[64], worse[64], calls[64] = "-", fewer[64];

	if (*m->broken) {
		text_addf(out, "%-*s  %s  %s\n", width, m->name, m->broken, word_of(r, i));
		return;
	}
	figure_text(perplexity, sizeof(perplexity), "%.3f", v->perplexity);
	figure_text(worse, sizeof(worse), "%+.2f", i ? v->perplexity_difference : none);
	figure_text(fewer, sizeof(fewer), "%+.2f", i ? v->calls_difference : none);
	if (m->calls.rows)
		snprintf(calls, sizeof(calls), "%llu of %llu", (unsigned long long)m->calls.exact,
			 (unsigned long long)m->calls.rows);
	text_addf(out, "%-*s  %22s  %18s  %14s  %18s  %9.1f  %s\n", width, m->name, perplexity, worse, calls,
		  fewer, rate_of(m), word_of(r, i));
}

static double megabytes(uint64_t bytes)
{
	return (double)bytes * 1e-6;
}

static void add_memory(struct text *out, const struct eval_measured *m)
{
	const struct engine_memory *y = &m->memory;
	const struct load_plan *p = &y->planned;

	text_addf(out, "\nmemory of %s%-*s  %12s  %12s\n", m->name,
		  (int)(strlen(m->name) < 32 ? 32 - strlen(m->name) : 0), "", "planned MB", "used MB");
	for (int i = 0; i < MEM_KINDS; i++)
		if (p->kind_peak[i] || y->used[i])
			text_addf(out, "  %-40s  %12.3f  %12.3f\n", engine_memory_text((enum memory_kind)i),
				  megabytes(p->kind_peak[i]), megabytes(y->used[i]));
	text_addf(out, "  %-40s  %12.3f  %12.3f\n", "  of the cache: pages in use",
		  megabytes((uint64_t)p->pages * p->page_bytes),
		  megabytes((uint64_t)y->pages_used * p->page_bytes));
	text_addf(out, "  %-40s  %12.3f  %12.3f\n", "all of these at one time", megabytes(p->bytes),
		  megabytes(y->used_bytes));
	if (m->gpu)
		text_addf(out, "  %-40s  %12s  %12.3f\n", "GPU memory outside the plan", "-",
			  megabytes(y->outside));
	text_addf(out, "  %-40s  %12s  %12.3f\n", "resident memory of the process so far", "-",
		  megabytes(y->process_bytes));
}

static void add_calls(struct text *out, const struct eval_measured *m, bool unanswered)
{
	const struct answer_totals *t = &m->calls;

	text_addf(
		out,
		"%s: %llu of %llu answers were cut, %llu refused; %llu of the other %llu have readable calls%s\n",
		m->name, (unsigned long long)t->cut, (unsigned long long)t->rows,
		(unsigned long long)t->refused, (unsigned long long)t->ended_valid,
		(unsigned long long)answer_totals_ended(t),
		unanswered ? "; not measured: too few answers" : "");
}

void eval_show(const struct eval_results *r)
{
	struct text out = {0};
	int width = 10;

	for (size_t i = 0; i < r->count; i++)
		if ((int)strlen(r->measured[i].name) > width)
			width = (int)strlen(r->measured[i].name);
	text_addf(&out, "%s on %s\n", r->model, r->measured[0].device);
	text_addf(
		&out,
		"%s: %llu tokens scored, in %zu windows of at most %zu tokens, stride %zu; %zu questions\n\n",
		r->path, (unsigned long long)r->windows->targets, r->windows->count, r->context, r->stride,
		r->data->question_count);
	text_addf(&out, "%-*s  %22s  %18s  %14s  %18s  %9s  %s\n", width, "precision", "perplexity",
		  "difference, %", "right calls", "difference, points", "tokens/s", "verdict");
	for (size_t i = 0; i < r->count; i++)
		add_row(&out, r, i, width);
	text_addf(
		&out,
		"\npass marks: perplexity at most %g %% higher, right calls at most %g points fewer than the "
		"reference's\n"
		"+/- is the half-width of the 95 %% interval, over windows or questions; differences are paired\n",
		r->marks.perplexity, r->marks.calls);
	if (r->data->question_count)
		text_addf(&out, "\nfunction calls, grammar: %s\n", r->grammar);
	for (size_t i = 0; r->data->question_count && i < r->count; i++)
		add_calls(&out, &r->measured[i], r->verdict[i].unanswered);
	for (size_t i = 0; i < r->count; i++)
		add_memory(&out, &r->measured[i]);
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

static json_t *real_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *figure_json(struct eval_figure f)
{
	return json_pack("{so so}", "value", real_or_null(f.value), "half_width",
			 isfinite(f.value) ? real_or_null(f.half_width) : json_null());
}

static json_t *calls_json(const struct answer_totals *t)
{
	json_t *out = answer_totals_json(t);

	answer_totals_ended_json(t, out);
	return out;
}

static json_t *side_json(const struct eval_results *r, size_t i)
{
	const struct eval_measured *m = &r->measured[i];
	const struct eval_verdict *v = &r->verdict[i];
	json_t *out = json_pack("{ss ss ss}", "precision", m->name, "device", m->device, "verdict",
				i ? eval_verdict_word(v) : "reference");

	if (*m->broken) {
		json_object_set_new(out, "why", json_string(m->broken));
	} else {
		json_object_set_new(out, "perplexity", figure_json(v->perplexity));
		json_object_set_new(out, "calls", calls_json(&m->calls));
	}
	if (i && !*m->broken) {
		json_object_set_new(out, "perplexity_difference_percent",
				    figure_json(v->perplexity_difference));
		json_object_set_new(out, "calls_difference_points", figure_json(v->calls_difference));
		json_object_set_new(out, "uncertain", json_boolean(v->uncertain));
	}
	json_object_set_new(out, "tokens", json_integer((json_int_t)m->tokens));
	json_object_set_new(out, "load_s", json_real(m->load_s));
	json_object_set_new(out, "seconds", json_real(m->seconds));
	json_object_set_new(out, "tokens_per_s", json_real(rate_of(m)));
	json_object_set_new(out, "memory", engine_memory_json(&m->memory));
	return out;
}

json_t *eval_json(const struct eval_results *r)
{
	json_t *sides = json_array();
	struct eval_verdict all = {.met = true};

	for (size_t i = 0; i < r->count; i++)
		json_array_append_new(sides, side_json(r, i));
	if (r->verdict[0].unanswered)
		all = (struct eval_verdict){.unanswered = true, .undecided = true};
	for (size_t i = 1; i < r->count; i++) {
		const struct eval_verdict *v = &r->verdict[i];

		if (!v->met && (all.met || !v->undecided))
			all = *v; /* a missed mark weighs more than one that is undecided */
	}
	return json_pack("{ss ss sI sI sI sI sI sI ss s{sf sf} so ss}", "model", r->model, "data", r->path,
			 "documents", (json_int_t)r->data->document_count, "questions",
			 (json_int_t)r->data->question_count, "windows", (json_int_t)r->windows->count,
			 "scored_tokens", (json_int_t)r->windows->targets, "context", (json_int_t)r->context,
			 "stride", (json_int_t)r->stride, "grammar", r->grammar, "marks",
			 "perplexity_percent", r->marks.perplexity, "calls_points", r->marks.calls,
			 "precisions", sides, "verdict", eval_verdict_word(&all));
}
