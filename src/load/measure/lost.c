/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/lost.h"
#include <math.h>

/* So many streams must follow one rule. */
static const double rule_share = 0.9;

/* Cut at the planned length, so it has no end token. */
static bool is_full(const struct load_record *r)
{
	return load_is_answered(r) && r->chunks && r->output_asked &&
	       r->output_usage >= (int64_t)r->output_asked;
}

/* Events beyond one for each reported token: 0 if the last token has the finish_reason, 1 if that has an
 * event of its own. */
static int64_t spare_of(const struct load_record *r)
{
	return (int64_t)r->chunks + r->blanks - r->output_usage;
}

/* The number of spare events that almost all streams have. False: there is none. */
static bool find_rule(const struct load_window *w, int64_t *rule)
{
	size_t streams = 0, with[2] = {0};

	for (size_t i = 0; i < w->count; i++) {
		const int64_t spare = is_full(w->due[i]) ? spare_of(w->due[i]) : -1;

		streams += is_full(w->due[i]);
		if (spare == 0 || spare == 1)
			with[spare]++;
	}
	*rule = with[1] > with[0];
	return streams && (double)with[*rule] >= rule_share * (double)streams;
}

double load_lost_streams(const struct load_window *w, bool *proven)
{
	size_t lost = 0, counted = 0;
	bool sends_blanks = false;
	int64_t rule;

	*proven = false;
	if (!find_rule(w, &rule))
		return (double)NAN;
	for (size_t i = 0; i < w->count; i++) {
		const struct load_record *r = w->due[i];
		const int64_t missing = is_full(r) ? rule - spare_of(r) : 0;

		sends_blanks = sends_blanks || (is_full(r) && !missing && r->blanks > (uint32_t)rule);
		if (missing <= 0)
			continue;
		if (r->output_counted >= 0 && r->output_usage - r->output_counted < missing)
			return 0; /* its text is whole: this server sends several tokens in one event at times
				   */
		lost++;
		counted += r->output_counted >= 0;
	}
	*proven = lost && sends_blanks && counted == lost;
	return (double)lost;
}
