/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a GPU: its use by other processes before assay's workers start. A container may hide the
 * processes, but it does not hide the memory in use. */
#include "core/text/text.h"
#include "core/text/units.h"
#include "probe/shared/reading.h"

#define FACTS(X)                                                                                             \
	X(processes, "", U64, -1, "processes of other programs on the GPU")                                  \
	X(processes_graphics, "", U64, -1, "graphics processes of other programs on the GPU")                \
	X(memory_bytes, "B", U64, 0, "device memory, total")                                                 \
	X(utilization_share, "", F64, -1, "share of the last second in which a kernel ran")                  \
	X(power_w, "W", F64, 0, "power now")
#define OTHERS(X)                                                                                            \
	X(memory_used_bytes, "B", U64, -1, "device memory in use, including the driver's own")               \
	X(memory_used_share, "", F64, -1, "device memory in use, share of the total")                        \
	X(process_list, "", TEXT, 0, "process ID, kind and memory of each process")

static const struct field fields[] = {FACTS(FIELD_ROW) OTHERS(FIELD_ROW)};
static const enum gpu_fact facts[] = {FACTS(READING_FACT)};
enum { FACTS(READING_PLACE) OTHERS(READING_PLACE) COUNT };
enum { FACT_COUNT = sizeof(facts) / sizeof(facts[0]), LISTED = 8 };

/* Process names stay in the facts. As a field, they would be part of every table that people share. */
static void list_processes(const struct machine *m, const struct gpu *g, struct result *out)
{
	const json_t *list = json_object_get(reading_gpu_json(m, g), "processes"), *p;
	struct text text = {0};
	size_t i;

	json_array_foreach((json_t *)list, i, p)
	{
		const char *kind = json_string_value(json_object_get(p, "kind"));
		const json_t *bytes = json_object_get(p, "memory_bytes");
		char memory[32];

		if (i == LISTED) {
			text_addf(&text, ", and %zu more", json_array_size(list) - LISTED);
			break;
		}
		text_addf(&text, "%spid %lld %s", i ? ", " : "",
			  (long long)json_integer_value(json_object_get(p, "pid")), kind ? kind : "unknown");
		if (!json_is_number(bytes))
			continue;
		units_format(memory, sizeof(memory), json_number_value(bytes), "B");
		text_addf(&text, " %s", memory);
	}
	if (text.size && !text.failed)
		result_text(out, &fields[AT_process_list], text.data);
	text_release(&text);
}

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const struct gpu *g;
	enum status st = reading_gpu(&g, m, t, err);
	double total, used;

	(void)opts;
	if (st)
		return st;
	if (!reading_facts(out, g, fields, facts, FACT_COUNT))
		return reading_none(m, g, "use by others", facts, FACT_COUNT, err);
	total = gpu_get(g, GPU_FACT_memory_bytes, 0);
	used = total - gpu_get(g, GPU_FACT_memory_free_bytes, total + 1);
	if (used >= 0 && total > 0) {
		result_u64(out, &fields[AT_memory_used_bytes], (uint64_t)used);
		result_f64(out, &fields[AT_memory_used_share], used / total);
	}
	list_processes(m, g, out);
	return STATUS_OK;
}

const struct probe probe_contamination = {
	.name = "contamination",
	.summary = "other processes, memory in use and utilisation before the run",
	.kind = PROBE_READING,
	.reads = TARGET_GPU,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
