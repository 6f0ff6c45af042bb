/* SPDX-License-Identifier: Apache-2.0 */
/* After the client process died: the figures of what it wrote. */
#include <math.h>
#include "cmd/load/load.h"
#include "load/record/record.h"

/* From the first request to the last one; nothing is known of the client itself. */
static struct load_measure_spec spec_of(const struct loading *l, const struct load_records *all)
{
	struct load_measure_spec spec = {.from_ns = UINT64_MAX,
					 .slo = l->spec.slo,
					 .slo_count = l->spec.slo_count,
					 .attainment = l->spec.attainment,
					 .expect_cached = true,
					 .closed_loop = true,
					 .cut = true,
					 .use = {.cpu_share = (double)NAN,
						 .cpus = (double)NAN,
						 .receive_late_p50_s = (double)NAN,
						 .receive_late_p99_s = (double)NAN,
						 .parse_behind_s = (double)NAN}};

	for (size_t i = 0; i < all->count; i++) {
		const uint64_t due_ns = all->record[i].scheduled_ns;

		if (due_ns < spec.from_ns)
			spec.from_ns = due_ns;
		if (due_ns >= spec.to_ns)
			spec.to_ns = due_ns + 1;
	}
	return spec;
}

json_t *load_recover(const struct loading *l)
{
	struct load_records all = {0};
	struct error why = {0};
	size_t cut;
	json_t *values = NULL;

	if (load_records_open(&all, l->dir, &cut, &why)) {
		log_warn(l->c->log, LOG_TOPIC_RUN, "no figures: %s", why.text);
	} else if (all.count) {
		const struct load_measure_spec spec = spec_of(l, &all);

		values = load_summary(&all, &spec);
	}
	load_records_release(&all);
	return values;
}
