/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading of a GPU: its PCIe link at rest. Idle GPUs lower the generation to 1, so the generation is not
 * judged here; the width stays. Error counts come from the kernel log (AER), because reading the device's
 * registers needs root.
 */
#include "probe/shared/reading.h"

#define FACTS(X)                                                                                             \
	X(pcie_gen, "", U64, 0, "PCIe generation now (idle GPUs drop to 1)")                                 \
	X(pcie_gen_max, "", U64, 0, "highest PCIe generation of the GPU in this slot")                       \
	X(pcie_gen_device, "", U64, 0, "highest PCIe generation of the GPU itself")                          \
	X(pcie_width, "", U64, 1, "PCIe lanes now")                                                          \
	X(pcie_width_max, "", U64, 0, "highest number of PCIe lanes")                                        \
	X(pcie_replays, "", U64, -1, "PCIe replay counter")
#define OTHERS(X)                                                                                            \
	X(pcie_aer_fatal, "", U64, -1, "uncorrectable PCIe errors of this device in the kernel log")         \
	X(pcie_aer_corrected, "", U64, -1, "corrected PCIe errors of this device in the kernel log")

static const struct field fields[] = {FACTS(FIELD_ROW) OTHERS(FIELD_ROW)};
static const enum gpu_fact facts[] = {FACTS(READING_FACT)};
enum { FACTS(READING_PLACE) OTHERS(READING_PLACE) COUNT };
enum { FACT_COUNT = sizeof(facts) / sizeof(facts[0]) };

/* "pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from 0000:1b:00.0" */
static bool read_log(const struct machine *m, const struct gpu *g, struct result *out)
{
	const json_t *lines = json_object_get(json_object_get(machine_json(m), "kernel_log"), "other"), *line;
	uint64_t fatal = 0, corrected = 0;
	bool readable;
	size_t i;

	if (!reading_log(m, &readable) || !readable)
		return false;
	json_array_foreach((json_t *)lines, i, line)
	{
		const char *text = json_string_value(line), *aer = text ? strstr(text, "AER:") : NULL;

		if (!aer || !strstr(text, g->pci))
			continue;
		if (strstr(aer, "ncorrect"))
			fatal++;
		else if (strstr(aer, "orrect"))
			corrected++;
	}
	result_u64(out, &fields[AT_pcie_aer_fatal], fatal);
	result_u64(out, &fields[AT_pcie_aer_corrected], corrected);
	return true;
}

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const struct gpu *g;
	enum status st = reading_gpu(&g, m, t, err);
	bool some;

	(void)opts;
	if (st)
		return st;
	some = reading_facts(out, g, fields, facts, FACT_COUNT) > 0;
	some |= read_log(m, g, out);
	return some ? STATUS_OK : reading_none(m, g, "PCIe", facts, FACT_COUNT, err);
}

const struct probe probe_pcie_state = {
	.name = "pcie_state",
	.summary = "PCIe lanes and generation at rest, replays, logged errors",
	.kind = PROBE_READING,
	.reads = TARGET_GPU,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
