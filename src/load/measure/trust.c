/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/trust.h"
#include <math.h>
#include <string.h>
#include "core/text/units.h"
#include "load/measure/lost.h"

/* A lag must matter: both the smallest TTFT of interest and the TTFT of this run are far larger. */
static const double lag_most_s = 1e-3, lag_most_share = 0.02;
/* A sender thread that is busy for longer has no reserve for bursts; queueing makes it late. */
static const double cpu_most = 0.8;
/* The requirement of the client. Fewer than this many requests apart is the edge of the window. */
static const double send_most = 0.005, send_apart_least = 2;
/* Common beginnings that are no plan's: a system prompt or a chat template. */
static const double cached_most = 0.05;
/* Text that is tokenized again may differ by single tokens from what was generated, and by an end token. */
static const double usage_most = 0.02;
static const double error_share_noted = 0.01;

struct check {
	const char *field, *unit, *reason;
	double limit;
};

static double value_of(const json_t *out, const char *name)
{
	const json_t *value = json_object_get(out, name);

	return value ? json_number_value(value) : (double)NAN;
}

static void put_cache(json_t *out, const struct load_window *w)
{
	double cached = 0, prompt = 0;
	bool known = false;

	for (size_t i = 0; i < w->count; i++) {
		const struct load_record *r = w->due[i];

		if (!load_is_answered(r) || r->cached < 0 || r->prompt_usage <= 0)
			continue;
		known = true;
		cached += (double)r->cached;
		prompt += (double)r->prompt_usage;
	}
	if (!known)
		return;
	load_put(out, "cached_tokens", cached);
	load_put(out, "cache_share", cached / prompt);
}

/* Differences do not cancel out between requests. */
static void put_usage(json_t *out, const struct load_window *w)
{
	double differ = 0, counted = 0;

	for (size_t i = 0; i < w->count; i++) {
		const struct load_record *r = w->due[i];
		double apart;

		if (!load_is_answered(r) || r->output_usage < 0 || r->output_counted <= 0)
			continue;
		apart = fabs((double)r->output_usage - (double)r->output_counted) - 1;
		differ += apart > 0 ? apart : 0;
		counted += (double)r->output_counted;
	}
	if (counted > 0)
		load_put(out, "usage_deviation", differ / counted);
}

/* No answer is longer than it was asked to be, but for a token that ends it. */
static void put_over_asked(json_t *out, const struct load_window *w)
{
	size_t count = 0;

	for (size_t i = 0; i < w->count; i++)
		count += load_is_answered(w->due[i]) && w->due[i]->output_asked &&
			 w->due[i]->output_usage > (int64_t)w->due[i]->output_asked + 1;
	load_put(out, "usage_over_asked", (double)count);
}

static void put_flags(json_t *out, const struct load_window *w)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} of[] = {{"no_done", LOAD_FLAG_NO_DONE},
		  {"no_finish", LOAD_FLAG_NO_FINISH},
		  {"duplicates", LOAD_FLAG_DUPLICATE},
		  {"after_done", LOAD_FLAG_AFTER_DONE},
		  {"no_usage", LOAD_FLAG_NO_USAGE},
		  {"resent", LOAD_FLAG_RESENT},
		  {"usage_under_events", LOAD_FLAG_LOW_USAGE}};

	for (size_t f = 0; f < sizeof(of) / sizeof(of[0]); f++) {
		size_t count = 0;

		for (size_t i = 0; i < w->count; i++)
			count += load_is_answered(w->due[i]) && (w->due[i]->flags & of[f].flag);
		load_put(out, of[f].name, (double)count);
	}
}

static void put_use(json_t *out, const struct load_client_use *use)
{
	load_put(out, "client_cpu_share", use->cpu_share);
	load_put(out, "client_cpus", use->cpus);
	load_put(out, "receive_late_p50_s", use->receive_late_p50_s);
	load_put(out, "receive_late_p99_s", use->receive_late_p99_s);
	load_put(out, "parse_behind_s", use->parse_behind_s);
	load_put(out, "waited_for_connection", (double)use->waited_for_connection);
}

/* With a cap on connections, requests wait by the user's choice. */
static bool cap_explains_lag(const json_t *out, const struct load_window *w)
{
	const double late = value_of(out, "late_sends"), waited = (double)w->spec->use.waited_for_connection;

	return waited > 0 && late - waited <= 0.01 * (double)w->count;
}

static double lag_limit(const json_t *out)
{
	const double ttft = value_of(out, "ttft_send_p50_s"), whole = value_of(out, "e2e_send_p50_s");
	const double share = lag_most_share * (isnan(ttft) ? whole : ttft);

	return share > lag_most_s ? share : lag_most_s;
}

/* The chat template's begin is the same in all prompts. */
static double cache_limit(const json_t *out, const struct load_window *w)
{
	const double share =
		w->spec->shared_tokens * value_of(out, "answered") / value_of(out, "prompt_tokens");

	return cached_most + (isfinite(share) ? share : 0);
}

static double send_limit(const struct load_window *w)
{
	return fmax(send_most, w->count ? send_apart_least / (double)w->count : 0);
}

static bool add_reason(json_t *untrusted, const struct check *c, double value)
{
	char is[32], limit[32], text[320];

	units_format(is, sizeof(is), value, c->unit);
	units_format(limit, sizeof(limit), c->limit, c->unit);
	snprintf(text, sizeof(text), "%s: %s, limit %s", c->reason, is, limit);
	return !json_array_append_new(untrusted, json_string(text));
}

static bool judge(json_t *out, json_t *checks, json_t *untrusted, const struct check *c)
{
	const double value = value_of(out, c->field);
	const bool kept = !(value > c->limit);

	if (isnan(value))
		return true;
	return !json_array_append_new(checks, json_pack("{s:s, s:f, s:f, s:b}", "name", c->field, "value",
							value, "limit", c->limit, "kept", kept)) &&
	       (kept || add_reason(untrusted, c, value));
}

static bool judge_all(json_t *out, json_t *checks, json_t *untrusted, const struct load_window *w,
		      bool lost_proven)
{
	const double never = (double)INFINITY, lag = lag_limit(out);
	const struct check list[] = {
		{"client_lag_p99_s", "s", "The client sent late, 99th percentile of its own delay",
		 cap_explains_lag(out, w) ? never : lag},
		{"receive_late_p99_s", "s", "The client read answers late, 99th percentile", lag},
		{"client_cpu_share", "", "A sender thread was busy, share of its time", cpu_most},
		{"send_deviation", "", "Sends differ from the schedule, share of the requests",
		 w->spec->closed_loop || cap_explains_lag(out, w) ? never : send_limit(w)},
		{"cache_share", "",
		 "The server had prompts in its cache that should be new, share of their tokens",
		 w->spec->expect_cached ? never : cache_limit(out, w)},
		{"usage_deviation", "", "Reported output tokens differ from the counted ones, share",
		 w->spec->ignores_end ? never : usage_most},
		{"usage_over_asked", "", "Reported output tokens are more than the answers could have", 0},
		{"usage_under_events", "",
		 "Streams have more events with text than the server reports tokens", 0},
		{"lost_tokens", "",
		 "Streams have fewer tokens than the server reports, by their events and text",
		 lost_proven ? 0 : never},
		{"no_done", "", "Streams ended without [DONE], so they may be cut", 0},
		{"no_finish", "", "Answers had no finish_reason, so they may be cut", 0},
		{"duplicates", "", "Streams had an event that came twice", 0},
		{"after_done", "", "Streams went on after [DONE]", 0},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (isfinite(list[i].limit) && !judge(out, checks, untrusted, &list[i]))
			return false;
	return true;
}

static bool note(json_t *notes, bool holds, const char *text)
{
	return !holds || !json_array_append_new(notes, json_string(text));
}

static bool add_notes(const json_t *out, json_t *notes, const struct load_window *w, bool lost_proven)
{
	return note(notes, w->spec->cut,
		    "The run was interrupted. The figures are those of the time before.") &&
	       note(notes, w->spec->use.waited_for_connection > 0,
		    "Requests waited for a free connection. Latencies from the schedule include this time.") &&
	       note(notes, value_of(out, "resent") > 0,
		    "The server closed connections after an answer without saying so. Requests on them were sent again on new "
		    "ones. Their latencies count from the schedule and from the first send.") &&
	       note(notes, value_of(out, "no_usage") > 0,
		    "The server did not report usage for some answers. Their tokens were counted from the text, "
		    "if a tokenizer is known.") &&
	       note(notes, w->spec->ignores_end && value_of(out, "usage_deviation") > usage_most,
		    "The texts have fewer tokens than the server reports. This is usual where a server goes on after the "
		    "end of a text, whose tokens have no text then. With --no-ignore-eos the counts are compared.") &&
	       note(notes, !lost_proven && value_of(out, "lost_tokens") > 0,
		    "Some streams have fewer events than the server reports tokens. The server lost tokens, or it sends no "
		    "event for a token without text, or it sometimes sends several tokens in an event.") &&
	       note(notes, value_of(out, "error_share") > error_share_noted,
		    "More than 1 % of the requests failed. Latencies are those of the others.") &&
	       note(notes, value_of(out, "answered") > 0 && isnan(value_of(out, "output_tokens")),
		    "The number of output tokens is not known, so there are no rates of tokens.") &&
	       note(notes, value_of(out, "over_saturated") > 0,
		    "The server was over-saturated. Latencies depend on the length of the run.");
}

bool load_trust_put(json_t *out, const struct load_window *w)
{
	json_t *checks = json_array(), *untrusted = json_array(), *notes = json_array();
	bool done = checks && untrusted && notes, lost_proven = false;

	put_cache(out, w);
	put_usage(out, w);
	put_over_asked(out, w);
	put_flags(out, w);
	load_put(out, "lost_tokens", load_lost_streams(w, &lost_proven));
	put_use(out, &w->spec->use);
	done = done && judge_all(out, checks, untrusted, w, lost_proven) &&
	       add_notes(out, notes, w, lost_proven);
	done = !json_object_set_new(out, "checks", checks) && done;
	done = !json_object_set_new(out, "untrusted", untrusted) && done;
	return !json_object_set_new(out, "notes", notes) && done;
}
