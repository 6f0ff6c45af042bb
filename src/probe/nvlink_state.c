/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a GPU: the state of its NVLinks, their error counts, and the state of the NVSwitch fabric. */
#include "core/text/text.h"
#include "probe/shared/reading.h"

#define FACTS(X)                                                                                             \
	X(nvlink_count, "", U64, 0, "number of NVLinks of the GPU, up or down")                              \
	X(nvlink_active, "", U64, 1, "NVLinks that are up")                                                  \
	X(nvlink_rate_gbps, "GB/s", F64, 1, "raw rate of one link, one way")                                 \
	X(nvlink_errors, "", U64, -1, "sum of NVLink CRC, replay and recovery errors")                       \
	X(fabric_state, "", U64, 0, "0 not supported, 1 not started, 2 in progress, 3 completed")            \
	X(fabric_status, "", U64, -1, "status of the fabric registration, 0 is success")
#define OTHERS(X)                                                                                            \
	X(nvlink_down, "", TEXT, 0, "numbers of the links that are not up")                                  \
	X(nvlink_error_links, "", TEXT, 0, "links with errors, and their error counts")

static const struct field fields[] = {FACTS(FIELD_ROW) OTHERS(FIELD_ROW)};
static const enum gpu_fact facts[] = {FACTS(READING_FACT)};
enum { FACTS(READING_PLACE) OTHERS(READING_PLACE) COUNT };
enum { FACT_COUNT = sizeof(facts) / sizeof(facts[0]) };

static void name_links_down(const struct machine *m, const struct gpu *g, struct result *out)
{
	const json_t *links = json_object_get(reading_gpu_json(m, g), "links"), *link;
	struct text down = {0};
	size_t i;

	json_array_foreach((json_t *)links, i, link)
	{
		if (!json_is_false(json_object_get(link, "active")))
			continue;
		text_addf(&down, "%s%lld", down.size ? "," : "",
			  (long long)json_integer_value(json_object_get(link, "link")));
	}
	if (down.size && !down.failed)
		result_text(out, &fields[AT_nvlink_down], down.data);
	text_release(&down);
}

/* Writes, for example, "link 3: 12, link 7: 1". The sum over all links would not say which links have
 * errors. */
static void name_links_in_error(const struct machine *m, const struct gpu *g, struct result *out)
{
	static const char *const counters[] = {"error_replay", "error_recovery", "error_crc",
					       "effective_errors", "symbol_errors"};
	const json_t *links = json_object_get(reading_gpu_json(m, g), "links"), *link;
	struct text list = {0};
	size_t i, c;

	json_array_foreach((json_t *)links, i, link)
	{
		double errors = 0;

		for (c = 0; c < sizeof(counters) / sizeof(counters[0]); c++)
			errors += json_number_value(json_object_get(link, counters[c]));
		if (errors > 0)
			text_addf(&list, "%slink %lld: %.0f", list.size ? ", " : "",
				  (long long)json_integer_value(json_object_get(link, "link")), errors);
	}
	if (list.size && !list.failed)
		result_text(out, &fields[AT_nvlink_error_links], list.data);
	text_release(&list);
}

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	static const enum gpu_fact counts[] = {GPU_FACT_nvlink_count, GPU_FACT_nvlink_active};
	const struct gpu *g;
	enum status st = reading_gpu(&g, m, t, err);

	(void)opts;
	if (st)
		return st;
	/* If fabric state 0 (not supported) is the only fact, the GPU has no NVLink. */
	if (gpu_get(g, GPU_FACT_nvlink_count, 0) < 1 && gpu_get(g, GPU_FACT_fabric_state, 0) < 1)
		return reading_none(m, g, "NVLink", counts, 2, err);
	reading_facts(out, g, fields, facts, FACT_COUNT);
	name_links_down(m, g, out);
	name_links_in_error(m, g, out);
	return STATUS_OK;
}

const struct probe probe_nvlink_state = {
	.name = "nvlink_state",
	.summary = "NVLinks that are up, their errors, and the state of the NVSwitch fabric",
	.kind = PROBE_READING,
	.reads = TARGET_GPU,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
