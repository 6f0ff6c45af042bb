/* SPDX-License-Identifier: Apache-2.0 */
/* A load test: failed requests, checks of the client and the server's answers, limits that were asked for
 * (SLO), and rules of the expectations. docs/explanation/methods/verdicts.md, "Load tests". */
#include <math.h>
#include "core/json/member.h"
#include "core/text/text.h"
#include "core/text/units.h"
#include "judge/case/verdict.h"

/* Failed requests above this share fail a run even if nothing was asked. */
static const double failed_most = 0.01;
/* For journals that do not say which share of the requests had to meet a set. */
static const double required_usual = 0.99;

bool subject_loads(const struct subject *s)
{
	return s->c->job && !strcmp(s->c->probe, "load");
}

/* The figure of the run: tokens a second, or requests a second if tokens are not known. */
static void take_figure(struct judgement *out, const json_t *values)
{
	const double tokens = json_member_number(values, "output_tokens_per_s");
	const bool known = tokens > 0;
	const double figure = known ? tokens : json_member_number(values, "completed_rate");

	text_copy(out->phase, sizeof(out->phase), "once");
	text_copy(out->figure_field, sizeof(out->figure_field),
		  known ? "output_tokens_per_s" : "completed_rate");
	text_copy(out->figure_unit, sizeof(out->figure_unit), known ? "token/s" : "1/s");
	out->has_figure = figure > 0;
	out->figure = out->has_figure ? figure : 0;
}

/* Failures of the client itself say nothing about the server: they make the run untrusted. */
static void judge_failures(struct judgement *out, const json_t *values)
{
	const double answered = json_member_number(values, "answered"),
		     failed = json_member_number(values, "failed");
	const double own = json_member_number(values, "errors_client"), mine = isnan(own) ? 0 : own;
	const double all = answered + failed;

	if (!(all > 0) || !(failed / all > failed_most))
		return;
	if ((failed - mine) / all > failed_most)
		finding(out, VERDICT_FAIL, CAUSE_REQUESTS_FAILED,
			"%.0f of %.0f requests failed (%.2f %%, allowed 1 %%)", failed - mine, all,
			100 * (failed - mine) / all);
	else
		finding(out, VERDICT_UNTRUSTED, CAUSE_CLIENT_LIMITED,
			"the client had no memory, descriptor or port left for %.0f of %.0f requests", mine,
			all);
}

/* A window without an answer shows neither a rate nor that the server answers in time. Returns whether the
 * window has answers. */
static bool judge_answers(struct judgement *out, const json_t *values)
{
	const double answered = json_member_number(values, "answered"),
		     rate = json_member_number(values, "completed_rate"),
		     half_s = json_member_number(values, "e2e_p50_s");
	char took[80] = "";

	if (answered == 0) { /* not NaN */
		finding(out, VERDICT_UNKNOWN, CAUSE_NO_ANSWER,
			"none of the %.0f requests of the measured window was answered",
			json_member_number(values, "requests"));
		return false;
	}
	if (rate != 0)
		return true;
	if (!isnan(half_s))
		snprintf(took, sizeof(took), ": half of them took more than %.3g s", half_s);
	finding(out, VERDICT_UNKNOWN, CAUSE_NO_ANSWER, "no answer ended within the measured window%s", took);
	return false;
}

/* The cause of the first check that did not hold. */
static enum cause cause_of_doubt(const json_t *values)
{
	static const struct {
		const char *check;
		enum cause cause;
	} causes[] = {
		{"cache_share", CAUSE_CACHED_PROMPTS},	 {"usage_deviation", CAUSE_USAGE_WRONG},
		{"usage_over_asked", CAUSE_USAGE_WRONG}, {"usage_under_events", CAUSE_USAGE_WRONG},
		{"lost_tokens", CAUSE_STREAM_FAULTY},	 {"no_done", CAUSE_STREAM_FAULTY},
		{"no_finish", CAUSE_STREAM_FAULTY},	 {"duplicates", CAUSE_STREAM_FAULTY},
		{"after_done", CAUSE_STREAM_FAULTY},
	};
	const json_t *list = json_object_get(values, "checks"), *check;
	size_t i, k;

	json_array_foreach((json_t *)list, i, check)
	{
		const char *name = json_member_text(check, "name");

		if (!json_is_false(json_object_get(check, "kept")))
			continue;
		for (k = 0; k < sizeof(causes) / sizeof(causes[0]); k++)
			if (!strcmp(causes[k].check, name))
				return causes[k].cause;
		break;
	}
	return CAUSE_CLIENT_LIMITED;
}

static void judge_trust(struct judgement *out, const json_t *values)
{
	const json_t *reasons = json_object_get(values, "untrusted");
	const char *first = json_string_value(json_array_get(reasons, 0));
	const size_t more = json_array_size(reasons) - 1;

	if (!first)
		return;
	if (more)
		finding(out, VERDICT_UNTRUSTED, cause_of_doubt(values), "%.260s (and %zu more)", first, more);
	else
		finding(out, VERDICT_UNTRUSTED, cause_of_doubt(values), "%.280s", first);
}

enum slo_state slo_state_of(const json_t *set)
{
	const double asked = json_member_number(set, "attainment"),
		     required = asked > 0 ? asked : required_usual;
	const double share = json_member_number(set, "share"), low = json_member_number(set, "share_low"),
		     high = json_member_number(set, "share_high");

	if (isnan(share) || isnan(low) || isnan(high))
		return SLO_UNDECIDED;
	if (required >= 1) /* no sample shows that all requests of all times meet a set */
		return share >= 1 ? SLO_MET : SLO_MISSED;
	if (low >= required)
		return SLO_MET;
	return high < required ? SLO_MISSED : SLO_UNDECIDED;
}

static void judge_set(struct judgement *out, const json_t *set)
{
	const double asked = json_member_number(set, "attainment"),
		     required = asked > 0 ? asked : required_usual;
	const char *name = json_member_text(set, "name");
	const enum slo_state state = slo_state_of(set);
	char shares[120];

	snprintf(shares, sizeof(shares), "%.2f %% of the requests met %.60s",
		 100 * json_member_number(set, "share"), name);
	if (state == SLO_MISSED)
		finding(out, VERDICT_FAIL, CAUSE_SLO_MISSED, "%s (%.2f .. %.2f %%), required %.4g %%", shares,
			100 * json_member_number(set, "share_low"),
			100 * json_member_number(set, "share_high"), 100 * required);
	else if (state == SLO_UNDECIDED && isnan(json_member_number(set, "share")))
		finding(out, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED,
			"no request was due in the measured window, so nothing shows whether %.60s is met",
			name);
	else if (state == SLO_UNDECIDED)
		finding(out, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED,
			"%s, but the interval %.2f .. %.2f %% holds the required %.4g %%: too few requests",
			shares, 100 * json_member_number(set, "share_low"),
			100 * json_member_number(set, "share_high"), 100 * required);
}

/* A sweep looks for the rate at which a set is only just met, so its sets are judged by what it found. */
static void judge_sweep(struct judgement *out, double met, double missed)
{
	if (met > 0)
		return;
	finding(out, VERDICT_FAIL, CAUSE_SLO_MISSED,
		"no rate met the limits; the lowest one tried was %.4g/s", missed);
}

/* Returns whether limits were asked for. */
static bool judge_sets(struct judgement *out, const json_t *values)
{
	const json_t *sets = json_object_get(values, "slo"), *set;
	const double met = json_member_number(values, "sweep_met_rate");
	size_t i;

	if (!isnan(met)) {
		judge_sweep(out, met, json_member_number(values, "sweep_missed_rate"));
		return true;
	}
	json_array_foreach((json_t *)sets, i, set) judge_set(out, set);
	return json_array_size(sets) > 0;
}

void sweep_words(char *out, size_t size, const json_t *values)
{
	const double met = json_member_number(values, "sweep_met_rate"),
		     missed = json_member_number(values, "sweep_missed_rate");
	const double sure = json_member_number(values, "sweep_sure_rate");
	char at[40] = "", with[80] = "";

	if (missed > 0)
		snprintf(at, sizeof(at), " and missed at %.4g/s", missed);
	if (sure > 0)
		snprintf(with, sizeof(with), "; with 95 %% confidence they are met up to %.4g/s", sure);
	else if (!isnan(sure))
		snprintf(with, sizeof(with), "; no rate has enough requests for 95 %% confidence");
	snprintf(out, size, "the limits are met up to %.4g/s%s, by the share of %.0f requests%s", met, at,
		 json_member_number(values, "requests"), with);
}

/* One line for a run without a finding. */
static void describe(struct judgement *out, const json_t *values, bool judged)
{
	const json_t *sets = json_object_get(values, "slo"), *first = json_array_get(sets, 0);
	const double ttft = json_member_number(values, "ttft_p50_s");
	char figure[48], time[48] = "";

	units_format(figure, sizeof(figure), out->figure, "");
	if (json_member_number(values, "sweep_met_rate") > 0) {
		sweep_words(out->reason, sizeof(out->reason), values);
		return;
	}
	if (first) {
		snprintf(out->reason, sizeof(out->reason),
			 "%.2f %% of the requests met %.60s (at least %.2f %%); goodput %.4g/s",
			 100 * json_member_number(first, "share"), json_member_text(first, "name"),
			 100 * json_member_number(first, "share_low"), json_member_number(first, "goodput"));
		return;
	}
	if (!isnan(ttft))
		snprintf(time, sizeof(time), "; median TTFT %.4g ms", 1e3 * ttft);
	snprintf(out->reason, sizeof(out->reason), "%.0f of %.0f requests answered; %s %s%s; %s",
		 json_member_number(values, "answered"), json_member_number(values, "requests"), figure,
		 strcmp(out->figure_unit, "1/s") ? "tokens/s" : "requests/s", time,
		 judged ? "all rules for it are met" : "no limits were asked for");
}

void verdict_load(struct judgement *out, const struct subject *s)
{
	const json_t *values = s->phase ? s->phase->values : NULL;
	unsigned judging = 0;
	bool asked = false, answered;

	if (!(json_member_number(values, "requests") > 0)) {
		finding(out, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, "no request was measured%s%.200s",
			*s->c->text ? ": " : "", s->c->text);
		return;
	}
	take_figure(out, values);
	judge_failures(out, values);
	answered = judge_answers(out, values);
	if (answered) /* else there are no figures to doubt */
		judge_trust(out, values);
	/* A late client may be the reason of a missed limit, and a failure must be certain. */
	if (out->verdict != VERDICT_UNTRUSTED &&
	    (answered || !json_array_size(json_object_get(values, "untrusted")))) {
		asked = judge_sets(out, values);
		verdict_rules(out, s, &judging);
	}
	out->judged_by = asked || judging ? JUDGED_RULE : JUDGED_NOTHING;
	if (!*out->reason) {
		out->verdict = asked || judging ? VERDICT_PASS : VERDICT_MEASURED;
		describe(out, values, judging > 0);
	}
}
