/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/summary.h"
#include <stdio.h>
#include "load/measure/curves.h"
#include "load/measure/goodput.h"
#include "load/measure/latency.h"
#include "load/measure/saturation.h"
#include "load/measure/throughput.h"
#include "load/measure/trust.h"

/* Counts of requests, and "errors": {word: count} of those that there are. */
static bool put_counts(json_t *out, const struct load_window *w)
{
	size_t count[LOAD_ERROR_COUNT] = {0}, failed = 0;
	json_t *errors = json_object();

	for (size_t i = 0; i < w->count; i++)
		count[w->due[i]->error]++;
	for (int e = LOAD_ERROR_NONE + 1; e < LOAD_ERROR_COUNT; e++) {
		const char *word = load_error_word((enum load_error)e);
		char key[32];

		snprintf(key, sizeof(key), "errors_%s", word);
		load_put(out, key, (double)count[e]);
		failed += e == LOAD_ERROR_CANCELLED ? 0 : count[e];
		if (count[e])
			json_object_set_new(errors, word, json_integer((json_int_t)count[e]));
	}
	load_put(out, "window_s", w->length_s);
	load_put(out, "requests", (double)w->count);
	load_put(out, "answered", (double)count[LOAD_ERROR_NONE]);
	load_put(out, "failed", (double)failed);
	if (failed + count[LOAD_ERROR_NONE])
		load_put(out, "error_share", (double)failed / (double)(failed + count[LOAD_ERROR_NONE]));
	return !json_object_set_new(out, "errors", errors);
}

/* The checks come last: they read the other figures. */
static bool put_all(json_t *out, const struct load_window *w)
{
	json_t *curves = json_object(), *cdf = json_object();
	bool done = curves && cdf && put_counts(out, w) && load_latencies_put(out, cdf, w) &&
		    load_throughput_put(out, w) && load_goodput_put(out, w) && load_saturation_put(out, w) &&
		    load_trust_put(out, w) && load_curves_put(curves, w);

	done = !json_object_set_new(curves, "cdf", cdf) && done;
	return !json_object_set_new(out, "curves", curves) && done;
}

json_t *load_summary(const struct load_records *all, const struct load_measure_spec *spec)
{
	struct load_window w;
	json_t *out = json_object();
	bool done = load_window_open(&w, all, spec) && out && put_all(out, &w);

	load_window_close(&w);
	if (done)
		return out;
	json_decref(out);
	return NULL;
}
