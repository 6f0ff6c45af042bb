/* SPDX-License-Identifier: Apache-2.0 */
/* assay info gpu: what the driver reports about each GPU, in groups. */
#include "cmd/info/info.h"
#include "core/json/member.h"
#include "vendor/nvml_types.h"

/* Words for facts whose value is a number with a meaning. NULL ends each list. */
static const char *const virtual_words[] = {"none",	     "pass-through",  "vGPU",
					    "host of vGPUs", "host of vSGAs", NULL};
static const char *const fabric_words[] = {"not supported", "not started", "in progress", "completed", NULL};
static const char *const action_words[] = {"none",	"reset the GPU",   "reboot the node",
					   "drain P2P", "drain and reset", "recover the IMEX domain",
					   "bus reset", "system reboot",   NULL};
static const char *const compute_words[] = {"default", "exclusive thread", "prohibited", "exclusive process",
					    NULL};
static const char *const on_words[] = {"off", "on", NULL};
static const char *const yes_words[] = {"no", "yes", NULL};

static const struct {
	enum gpu_fact fact;
	const char *const *words;
} worded[] = {
	{GPU_FACT_virtualization, virtual_words},
	{GPU_FACT_fabric_state, fabric_words},
	{GPU_FACT_recovery_action, action_words},
	{GPU_FACT_compute_mode, compute_words},
	{GPU_FACT_ecc_enabled, on_words},
	{GPU_FACT_mig_mode, on_words},
	{GPU_FACT_persistence, on_words},
	{GPU_FACT_remap_pending, yes_words},
	{GPU_FACT_remap_failed, yes_words},
	{GPU_FACT_ecc_sram_threshold, yes_words},
	{GPU_FACT_cuda_profiling_restricted, yes_words},
};

static const struct {
	unsigned bit;
	const char *name;
} reasons[] = {{NVML_REASON_IDLE, "idle"},
	       {NVML_REASON_APPLICATION_CLOCKS, "application clocks"},
	       {NVML_REASON_SW_POWER_CAP, "software power cap"},
	       {NVML_REASON_HW_SLOWDOWN, "hardware slowdown"},
	       {NVML_REASON_SYNC_BOOST, "sync boost"},
	       {NVML_REASON_SW_THERMAL, "software thermal"},
	       {NVML_REASON_HW_THERMAL, "hardware thermal"},
	       {NVML_REASON_HW_POWER_BRAKE, "power brake"},
	       {NVML_REASON_DISPLAY, "display clock"}};

/* The rows; {fact} is replaced by a fact with its unit. A test checks that every fact is in one of the
 * rows. */
static const struct {
	const char *group, *label, *form;
} rows[] = {
	{"Chip", "multiprocessors", "{sm_count}, compute capability {cc}"},
	{"", "caches", "L2 {l2_bytes}, shared memory {smem_optin_bytes} per block"},
	{"", "copy engines", "{copy_engines}"},
	{"Memory", "size", "{memory_bytes}, {memory_free_bytes} free"},
	{"", "bus", "{bus_bits} at {memory_clock_mhz} now, {memory_clock_max_mhz} maximum"},
	{"Clocks", "SM", "{sm_clock_mhz} now, {sm_clock_max_mhz} maximum"},
	{"", "limited by", "{clock_reasons}"},
	{"Power and heat", "power", "{power_w} now"},
	{"", "limit",
	 "{power_limit_w} enforced, {power_limit_default_w} default, {power_limit_max_w} highest"},
	{"", "temperature", "{temperature_c} now, slows down at {temperature_slowdown_c}"},
	{"", "memory", "{temperature_memory_c} now"},
	{"Errors", "ECC", "{ecc_enabled}"},
	{"", "uncorrected",
	 "{ecc_volatile_uncorrected} since the driver loaded, {ecc_aggregate_uncorrected} in its lifetime"},
	{"", "corrected",
	 "{ecc_volatile_corrected} since the driver loaded, {ecc_aggregate_corrected} in its lifetime"},
	{"", "SRAM threshold", "exceeded: {ecc_sram_threshold}"},
	{"", "rows remapped",
	 "{remapped_correctable} for corrected, {remapped_uncorrectable} for uncorrected errors"},
	{"", "remaps",
	 "pending: {remap_pending}, failed: {remap_failed}, banks without a spare row: {remap_banks_none}"},
	{"", "pages retired", "{retired_pages}"},
	{"", "recovery action", "{recovery_action}"},
	{"PCIe", "link",
	 "gen {pcie_gen} x{pcie_width} now, gen {pcie_gen_max} x{pcie_width_max} possible here"},
	{"", "GPU", "gen {pcie_gen_device}"},
	{"", "replays", "{pcie_replays}"},
	{"", "NUMA node", "{numa_node}"},
	{"NVLink", "links",
	 "{nvlink_active} of {nvlink_count} up, {nvlink_rate_gbps} per link and direction"},
	{"", "errors", "{nvlink_errors}"},
	{"", "fabric", "{fabric_state}, status {fabric_status}"},
	{"Modes", "MIG", "{mig_mode}"},
	{"", "persistence", "{persistence}"},
	{"", "compute mode", "{compute_mode}"},
	{"", "virtualisation", "{virtualization}"},
	{"", "counters", "restricted to administrators: {cuda_profiling_restricted}"},
	{"In use", "utilisation", "{utilization_share}"},
	{"", "processes", "{processes}, including {processes_graphics} graphics"},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

bool info_gpu_shows(enum gpu_fact fact)
{
	char mark[64];

	snprintf(mark, sizeof(mark), "{%s}", gpu_fact_name(fact));
	for (size_t i = 0; i < ROWS; i++) {
		if (strstr(rows[i].form, mark))
			return true;
	}
	return false;
}

static void reasons_text(struct text *t, unsigned bits)
{
	bool some = false;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (!(bits & reasons[i].bit))
			continue;
		text_addf(t, "%s%s", some ? ", " : "", reasons[i].name);
		some = true;
	}
	if (!some)
		text_add(t, "nothing");
}

static const char *word_of(enum gpu_fact fact, double v)
{
	for (size_t i = 0; i < sizeof(worded) / sizeof(worded[0]); i++) {
		if (worded[i].fact != fact)
			continue;
		for (size_t w = 0; worded[i].words[w]; w++) {
			if ((double)w == v)
				return worded[i].words[w];
		}
	}
	return NULL;
}

void info_fact(struct text *t, const struct gpu *g, enum gpu_fact fact)
{
	double v = gpu_get(g, fact, 0);
	const char *unit = gpu_fact_unit(fact), *word = word_of(fact, v);
	char bytes[32];

	if (word)
		text_add(t, word);
	else if (fact == GPU_FACT_clock_reasons)
		reasons_text(t, (unsigned)v);
	else if (fact == GPU_FACT_numa_node && v < 0)
		text_add(t, "not reported");
	else if (fact == GPU_FACT_cc)
		text_addf(t, "%.1f", v / 10);
	else if (fact == GPU_FACT_utilization_share)
		text_addf(t, "%.0f %%", v * 100);
	else if (!strcmp(unit, "B"))
		text_add(t, info_bytes(bytes, v));
	else
		text_addf(t, "%.*f%s%s", unit[0] == 'W' && v < 100 ? 1 : 0, v, *unit ? " " : "", unit);
}

const char *info_fact_why(const json_t *row, const struct gpu *g, enum gpu_fact fact)
{
	const char *why = json_member_text(json_object_get(row, "unreadable"), gpu_fact_name(fact));

	if (*why)
		return why;
	return g->status ? g->reason : "not reported by the driver";
}

static bool fact_named(const char *name, size_t n, enum gpu_fact *fact)
{
	for (unsigned i = 0; i < GPU_FACT_COUNT; i++) {
		*fact = (enum gpu_fact)i;
		if (strlen(gpu_fact_name(*fact)) == n && !strncmp(gpu_fact_name(*fact), name, n))
			return true;
	}
	return false;
}

/* Fills one row. An absent fact is shown as "?", with the reason at the end. If all facts are absent, only
 * the reason is shown. */
static void fill_row(struct text *t, const char *form, const json_t *row, const struct gpu *g)
{
	const char *why = NULL;
	unsigned known = 0;

	while (*form) {
		size_t n = strcspn(form, "{");
		enum gpu_fact fact;

		text_add_bytes(t, form, n);
		form += n;
		if (!*form)
			break;
		n = strcspn(++form, "}");
		if (fact_named(form, n, &fact) && gpu_has(g, fact)) {
			info_fact(t, g, fact);
			known++;
		} else {
			text_add(t, "?");
			why = why ? why : info_fact_why(row, g, fact);
		}
		form += n + 1;
	}
	if (why && known)
		text_addf(t, " (?: %s)", why);
	if (!known) {
		text_release(t);
		text_addf(t, "unreadable: %s", why);
	}
}

static void fact_rows(struct text *t, const json_t *row, const struct gpu *g)
{
	for (size_t i = 0; i < ROWS; i++) {
		struct text value = {0};

		if (*rows[i].group)
			text_addf(t, " %s\n", rows[i].group);
		fill_row(&value, rows[i].form, row, g);
		info_row(t, rows[i].label, "%s", text_str(&value));
		text_release(&value);
		if (!strncmp(rows[i].form, "{bus_bits}", 10) && gpu_has(g, GPU_FACT_bus_bits) &&
		    gpu_has(g, GPU_FACT_memory_clock_max_mhz))
			info_row(t, "bandwidth", "%.3f TB/s from 2 x maximum clock x width",
				 2 * gpu_get(g, GPU_FACT_memory_clock_max_mhz, 0) * 1e6 *
					 gpu_get(g, GPU_FACT_bus_bits, 0) / 8 * 1e-12);
	}
}

/* Shows the GPU's number in each interface that lists it: "NVML 0, CUDA 0, /dev/nvidia0". */
static void listed_row(struct text *t, const json_t *row, const struct gpu *g)
{
	const json_t *minor = json_object_get(row, "minor");
	struct text where = {0};

	if (g->nvml_index >= 0)
		text_addf(&where, "NVML %d", g->nvml_index);
	if (g->cuda_index >= 0)
		text_addf(&where, "%sCUDA %d", where.size ? ", " : "", g->cuda_index);
	if (json_is_integer(minor))
		text_addf(&where, "%s/dev/nvidia%d", where.size ? ", " : "", (int)json_integer_value(minor));
	info_row(t, "listed as", "%s", where.size ? text_str(&where) : "only by its PCI address");
	text_release(&where);
}

static void identity_rows(struct text *t, const json_t *row, const struct gpu *g)
{
	text_add(t, " Identity\n");
	info_row(t, "PCI", "%s, device %04x:%04x, board %04x:%04x", g->pci, g->pci_device & 0xffff,
		 g->pci_device >> 16, g->pci_subsystem & 0xffff, g->pci_subsystem >> 16);
	if (g->slot[0])
		info_row(t, "slot", "%s", g->slot);
	else
		info_row_unreadable(t, "slot", "no file in /sys/bus/pci/slots names this device");
	listed_row(t, row, g);
	info_row(t, "UUID", "%s", g->uuid);
	info_row(t, "serial", "%s", g->serial);
	info_row(t, "part", "%s", json_member_text(row, "part_number"));
	info_row(t, "VBIOS", "%s", g->vbios);
	info_row(t, "firmware", "%s", json_member_text(row, "gsp_firmware"));
	info_row(t, "InfoROM", "%s", json_member_text(row, "inforom"));
	info_row(t, "local CPUs", "%s", json_member_text(row, "local_cpus"));
}

static void process_rows(struct text *t, const json_t *row)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(row, "processes"), i, p)
	{
		const json_t *memory = json_object_get(p, "memory_bytes");
		char bytes[32];

		info_row(t, i ? "" : "running", "%s, %s, pid %" JSON_INTEGER_FORMAT "%s%s",
			 json_member_text(p, "kind"), json_member_text(p, "name"),
			 json_integer_value(json_object_get(p, "pid")), memory ? ", " : "",
			 memory ? info_bytes(bytes, json_number_value(memory)) : "");
	}
}

static void one_gpu(struct text *t, const json_t *row, const struct gpu *g, unsigned index)
{
	const char *because = json_member_text(row, "not_granted_because");

	text_addf(t, "GPU %u  %s\n", index, g->name[0] ? g->name : "name unreadable");
	info_row(t, "state", "%s%s%s", status_name(g->status), g->reason[0] ? ": " : "", g->reason);
	info_row(t, "access granted", "%s%s%s", g->granted ? "yes" : "no", *because ? ": " : "", because);
	identity_rows(t, row, g);
	if (g->status)
		info_row_unreadable(t, "other facts", g->reason);
	else
		fact_rows(t, row, g);
	process_rows(t, row);
}

void info_gpu(struct text *t, const struct machine *m)
{
	if (!machine_gpu_count(m))
		text_add(t, "GPUs\n  none on the PCI bus\n");
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		if (i)
			text_add(t, "\n");
		one_gpu(t, machine_gpu_json(m, i), machine_gpu(m, i), i);
	}
}
