/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/goodput.h"
#include <math.h>
#include "load/measure/percentile.h"

static bool within(double limit, double value)
{
	return !(limit > 0) || value <= limit;
}

bool load_slo_met(const struct load_slo *slo, const struct load_record *r)
{
	const int64_t tokens = load_output_tokens(r);
	const bool one_token = tokens == 0 || tokens == 1;

	return load_is_answered(r) && within(slo->ttft_s, load_latency_of(r, LOAD_TTFT)) &&
	       (one_token || within(slo->tpot_s, load_latency_of(r, LOAD_TPOT))) &&
	       within(slo->e2e_s, load_latency_of(r, LOAD_E2E));
}

/* Requests that were in flight when the user stopped the run say nothing; otherwise they took too long. */
static bool counts(const struct load_window *w, const struct load_record *r)
{
	return !w->spec->cut || r->error != LOAD_ERROR_CANCELLED;
}

/* 0 for a request that meets the set, 1 for one that misses it, in the order of the schedule. */
static bool find_misses(struct load_series *miss, const struct load_window *w, const struct load_slo *slo)
{
	for (size_t i = 0; i < w->count; i++)
		if (counts(w, w->due[i]) && !load_series_add(miss, load_slo_met(slo, w->due[i]) ? 0 : 1))
			return false;
	return true;
}

static json_t *set_of(const struct load_window *w, const struct load_slo *slo, const struct load_series *miss)
{
	json_t *set = json_pack("{s:s}", "name", slo->name);
	double met = (double)miss->count, share, low, high;

	if (!set)
		return NULL;
	load_put(set, "attainment", w->spec->attainment);
	load_put(set, "ttft_s", slo->ttft_s > 0 ? slo->ttft_s : (double)NAN);
	load_put(set, "tpot_s", slo->tpot_s > 0 ? slo->tpot_s : (double)NAN);
	load_put(set, "e2e_s", slo->e2e_s > 0 ? slo->e2e_s : (double)NAN);
	if (!miss->count || !(w->length_s > 0))
		return set;
	for (size_t i = 0; i < miss->count; i++)
		met -= miss->x[i];
	share = met / (double)miss->count;
	load_share_interval(share, (double)miss->count / load_share_inflation(miss->x, miss->count, 0), &low,
			    &high);
	load_put(set, "goodput", met / w->length_s);
	load_put(set, "share", share);
	load_put(set, "share_low", low);
	load_put(set, "share_high", high);
	json_object_set_new(set, "met", json_boolean(share >= w->spec->attainment));
	return set;
}

static void copy(json_t *out, const char *to, const json_t *set, const char *from)
{
	json_t *value = json_object_get(set, from);

	if (value)
		json_object_set(out, to, value);
}

/* Absent without sets, or without requests to judge by. */
static void put_verdict(json_t *out, const json_t *list)
{
	bool met = true;
	json_t *set;
	size_t i;

	json_array_foreach(list, i, set)
	{
		const json_t *verdict = json_object_get(set, "met");

		if (!verdict)
			return;
		met = met && json_is_true(verdict);
	}
	if (json_array_size(list))
		load_put(out, "slo_met", met);
}

bool load_goodput_put(json_t *out, const struct load_window *w)
{
	json_t *list = json_array(), *first;
	bool done = list != NULL;

	for (size_t i = 0; i < w->spec->slo_count && done; i++) {
		struct load_series miss = {0};

		done = find_misses(&miss, w, &w->spec->slo[i]) &&
		       !json_array_append_new(list, set_of(w, &w->spec->slo[i], &miss));
		load_series_release(&miss);
	}
	first = json_array_get(list, 0);
	put_verdict(out, list);
	copy(out, "goodput", first, "goodput");
	copy(out, "slo_share", first, "share");
	copy(out, "slo_share_low", first, "share_low");
	copy(out, "slo_share_high", first, "share_high");
	return !json_object_set_new(out, "slo", list) && done;
}
