/* SPDX-License-Identifier: Apache-2.0 */
/* Turns one GPU's NVML answers, [code, value], into facts. If the code is not 0, the fact is absent, with the
 * reason. */
#include <strings.h>
#include "core/math/plausible_range.h"
#include "core/text/text.h"
#include "machine/facts/facts.h"
#include "vendor/nvml.h"

/* Sources of each fact, best first: the key in "calls" or "fields", the element of a list (-1: a plain
 * number), and the scale. */
static const struct {
	const char *fact, *part, *key;
	int element;
	double scale;
} rows[] = {
	{"memory_bytes", "calls", "memory_v2", 0, 1},
	{"memory_bytes", "calls", "memory", 0, 1},
	{"memory_free_bytes", "calls", "memory_v2", 2, 1},
	{"memory_free_bytes", "calls", "memory", 1, 1},
	{"bus_bits", "calls", "bus_width", -1, 1},
	{"sm_clock_mhz", "calls", "clock_sm", -1, 1},
	{"sm_clock_max_mhz", "calls", "clock_max_sm", -1, 1},
	{"memory_clock_mhz", "calls", "clock_memory", -1, 1},
	{"memory_clock_max_mhz", "calls", "clock_max_memory", -1, 1},
	{"power_limit_w", "calls", "power_limit", -1, 1e-3},
	{"power_limit_w", "fields", "power_limit_current", -1, 1e-3},
	{"power_limit_default_w", "calls", "power_limit_default", -1, 1e-3},
	{"power_limit_default_w", "fields", "power_limit_default", -1, 1e-3},
	{"power_limit_max_w", "calls", "power_limit_range", 1, 1e-3},
	{"power_limit_max_w", "fields", "power_limit_max", -1, 1e-3},
	{"power_w", "fields", "power_instant", -1, 1e-3},
	{"power_w", "calls", "power", -1, 1e-3},
	{"temperature_c", "calls", "temperature", -1, 1},
	{"temperature_c", "calls", "temperature_old", -1, 1},
	{"temperature_slowdown_c", "calls", "temperature_slowdown", -1, 1},
	{"temperature_memory_c", "fields", "memory_temperature", -1, 1},
	{"utilization_share", "calls", "utilization", 0, 1e-2},
	{"ecc_enabled", "calls", "ecc_mode", 0, 1},
	{"ecc_volatile_uncorrected", "calls", "ecc_volatile_uncorrected", -1, 1},
	{"ecc_volatile_uncorrected", "fields", "ecc_volatile_uncorrected", -1, 1},
	{"ecc_aggregate_uncorrected", "calls", "ecc_aggregate_uncorrected", -1, 1},
	{"ecc_aggregate_uncorrected", "fields", "ecc_aggregate_uncorrected", -1, 1},
	{"ecc_volatile_corrected", "calls", "ecc_volatile_corrected", -1, 1},
	{"ecc_volatile_corrected", "fields", "ecc_volatile_corrected", -1, 1},
	{"ecc_aggregate_corrected", "calls", "ecc_aggregate_corrected", -1, 1},
	{"ecc_aggregate_corrected", "fields", "ecc_aggregate_corrected", -1, 1},
	{"ecc_sram_threshold", "calls", "ecc_sram", 11, 1},
	{"remapped_correctable", "calls", "remapped_rows", 0, 1},
	{"remapped_correctable", "fields", "remapped_correctable", -1, 1},
	{"remapped_uncorrectable", "calls", "remapped_rows", 1, 1},
	{"remapped_uncorrectable", "fields", "remapped_uncorrectable", -1, 1},
	{"remap_pending", "calls", "remapped_rows", 2, 1},
	{"remap_pending", "fields", "remap_pending", -1, 1},
	{"remap_failed", "calls", "remapped_rows", 3, 1},
	{"remap_failed", "fields", "remap_failed", -1, 1},
	{"remap_banks_none", "calls", "remap_histogram", 4, 1},
	{"pcie_gen", "calls", "pcie_gen", -1, 1},
	{"pcie_gen_max", "calls", "pcie_gen_max", -1, 1},
	{"pcie_gen_device", "calls", "pcie_gen_device", -1, 1},
	{"pcie_width", "calls", "pcie_width", -1, 1},
	{"pcie_width_max", "calls", "pcie_width_max", -1, 1},
	{"pcie_replays", "calls", "pcie_replays", -1, 1},
	{"pcie_replays", "fields", "pcie_replay", -1, 1},
	{"mig_mode", "calls", "mig_mode", 0, 1},
	{"persistence", "calls", "persistence", -1, 1},
	{"compute_mode", "calls", "compute_mode", -1, 1},
	{"nvlink_rate_gbps", "fields", "nvlink_speed_common", -1, 1e-3},
	{"fabric_state", "calls", "fabric", 0, 1},
	{"fabric_state", "calls", "fabric_old", 0, 1},
	{"fabric_status", "calls", "fabric", 1, 1},
	{"fabric_status", "calls", "fabric_old", 1, 1},
	{"recovery_action", "fields", "recovery_action", -1, 1},
	{"clock_reasons", "calls", "reasons", -1, 1},
	{"clock_reasons", "calls", "reasons_old", -1, 1},
	{"virtualization", "calls", "virtualization", -1, 1},
};

/* The number in an answer. Returns false with *why set if there is none. */
static bool number_of(const json_t *answer, int element, double *out, const char **why)
{
	const json_t *value = json_array_get(answer, 1);
	json_int_t code = json_integer_value(json_array_get(answer, 0));

	*why = !answer ? "not read" : code ? nvml_code_text((int)code) : "not a number";
	if (!answer || code)
		return false;
	if (element >= 0)
		value = json_array_get(value, (size_t)element);
	if (!json_is_number(value))
		return false;
	*out = json_number_value(value);
	return true;
}

static void set_why(json_t *gpu, const char *fact, const char *why)
{
	json_object_set_new(json_object_get(gpu, "unreadable"), fact, json_string(why));
}

void facts_gpu_set(json_t *gpu, const char *fact, double value, const char *function)
{
	const struct plausible *range = plausible_of(fact);
	char why[160];

	if (plausible(fact, value)) {
		facts_set_number(json_object_get(gpu, "facts"), fact, value);
		json_object_del(json_object_get(gpu, "unreadable"), fact);
		return;
	}
	snprintf(why, sizeof(why), "%s answered %.10g%s%s, " FACTS_IMPOSSIBLE,
		 function ? function
		 : range  ? range->function
			  : "the driver",
		 value, range && *range->unit ? " " : "", range ? range->unit : "");
	set_why(gpu, fact, why);
}

static void set_fact(json_t *gpu, const char *fact, double value)
{
	facts_gpu_set(gpu, fact, value, NULL);
}

/* The NVML function for a key of the answers; NULL: several facts share the function. */
static const char *function_of(const char *part, const char *key)
{
	static const struct {
		const char *key, *symbol;
	} functions[] = {
#define X(need, ret, field, symbol, params) {#field, #symbol},
		NVML_FUNCTIONS(X)
#undef X
	};

	if (!strcmp(part, "fields"))
		return "nvmlDeviceGetFieldValues";
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].key, key))
			return functions[i].symbol;
	return NULL;
}

static void table_facts(json_t *gpu, const json_t *raw)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const json_t *answer = json_object_get(json_object_get(raw, rows[i].part), rows[i].key);
		const char *why;
		double value;

		if (json_object_get(json_object_get(gpu, "facts"), rows[i].fact))
			continue;
		if (number_of(answer, rows[i].element, &value, &why))
			facts_gpu_set(gpu, rows[i].fact, value * rows[i].scale,
				      function_of(rows[i].part, rows[i].key));
		else if (answer)
			set_why(gpu, rows[i].fact, why);
	}
}

static void text_facts(json_t *gpu, const json_t *calls)
{
	static const struct {
		const char *key, *name;
	} texts[] = {{"name", "name"},
		     {"uuid", "uuid"},
		     {"serial", "serial"},
		     {"vbios", "vbios"},
		     {"part_number", "part_number"},
		     {"inforom", "inforom"},
		     {"gsp_version", "gsp_firmware"}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const json_t *answer = json_object_get(calls, texts[i].key);
		json_int_t code = json_integer_value(json_array_get(answer, 0));

		if (answer && !code)
			facts_set_text(gpu, texts[i].name, json_string_value(json_array_get(answer, 1)));
		else if (answer)
			set_why(gpu, texts[i].name, nvml_code_text((int)code));
	}
}

static void odd_facts(json_t *gpu, const json_t *calls)
{
	double a, b;
	const char *why;

	if (number_of(json_object_get(calls, "compute_capability"), 0, &a, &why) &&
	    number_of(json_object_get(calls, "compute_capability"), 1, &b, &why))
		set_fact(gpu, "cc", 10 * a + b);
	if (number_of(json_object_get(calls, "retired_sbe"), -1, &a, &why) &&
	    number_of(json_object_get(calls, "retired_dbe"), -1, &b, &why))
		set_fact(gpu, "retired_pages", a + b);
	else
		set_why(gpu, "retired_pages", why);
}

static void add_processes(json_t *list, const json_t *answer, const char *kind)
{
	const json_t *p;
	size_t i;

	json_array_foreach((json_t *)json_array_get(answer, 1), i, p)
	{
		json_t *row = json_pack("{s:s,s:I}", "kind", kind, "pid",
					json_integer_value(json_object_get(p, "pid")));
		json_int_t bytes = json_integer_value(json_object_get(p, "memory"));

		if (!row)
			continue;
		if (bytes >= 0 && json_is_integer(json_object_get(p, "memory")))
			json_object_set_new(row, "memory_bytes", json_integer(bytes));
		facts_set_text(row, "name", json_string_value(json_object_get(p, "name")));
		json_array_append_new(list, row);
	}
}

static void process_facts(json_t *gpu, const json_t *calls)
{
	const json_t *compute = json_object_get(calls, "compute_processes");
	const json_t *graphics = json_object_get(calls, "graphics_processes");
	json_t *list = json_array();
	bool known = compute && !json_integer_value(json_array_get(compute, 0));

	if (known)
		add_processes(list, compute, "compute");
	if (graphics && !json_integer_value(json_array_get(graphics, 0))) {
		set_fact(gpu, "processes_graphics", (double)json_array_size(json_array_get(graphics, 1)));
		add_processes(list, graphics, "graphics");
	}
	if (known)
		set_fact(gpu, "processes", (double)json_array_size(list));
	else if (compute)
		set_why(gpu, "processes",
			nvml_code_text((int)json_integer_value(json_array_get(compute, 0))));
	if (json_array_size(list))
		json_object_set(gpu, "processes", list);
	json_decref(list);
}

static const char *remote_name(double type)
{
	return type == 0 ? "gpu" : type == 1 ? "cpu" : type == 2 ? "switch" : "unknown";
}

static bool link_facts(json_t *row, const json_t *raw, double *errors, bool *has_errors)
{
	static const char *const counters[] = {"error_replay", "error_recovery", "error_crc",
					       "effective_errors", "symbol_errors"};
	const json_t *fields = json_object_get(raw, "fields"), *pci;
	const char *why, *bus;
	double v;

	if (!number_of(json_object_get(raw, "nvlink_state"), -1, &v, &why))
		return false;
	json_object_set_new(row, "active", json_boolean(v == 1));
	if (number_of(json_object_get(raw, "nvlink_version"), -1, &v, &why))
		facts_set_number(row, "version", v);
	if (number_of(json_object_get(raw, "nvlink_remote_type"), -1, &v, &why))
		facts_set_text(row, "remote_type", remote_name(v));
	pci = json_array_get(json_object_get(raw, "nvlink_remote_pci"), 1);
	bus = json_string_value(json_object_get(pci, "bus_id"));
	if (bus &&
	    strncasecmp(bus, "ffffffff", 8)) /* a guest gets this address for a switch that it does not own */
		facts_set_text(row, "remote_pci", bus);
	if (number_of(json_object_get(fields, "speed"), -1, &v, &why))
		facts_set_number(row, "rate_gbps", v * 1e-3);
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		if (!number_of(json_object_get(fields, counters[i]), -1, &v, &why))
			continue;
		facts_set_number(row, counters[i], v);
		*errors += v;
		*has_errors = true;
	}
	return true;
}

bool facts_nvlink(json_t *row, const json_t *raw)
{
	double errors = 0;
	bool has_errors = false;

	return link_facts(row, raw, &errors, &has_errors);
}

static void nvlink_facts(json_t *gpu, const json_t *raw)
{
	static const char *const totals[] = {"nvlink_crc_flit_total", "nvlink_crc_data_total",
					     "nvlink_replay_total", "nvlink_recovery_total"};
	const json_t *links = json_object_get(raw, "links"), *link;
	json_t *list = json_array();
	double errors = 0, v, count = 0;
	unsigned active = 0;
	bool has_errors = false;
	const char *why = "not read", *unused;
	size_t i;

	json_array_foreach((json_t *)links, i, link)
	{
		json_t *row = json_pack("{s:i}", "link", (int)i);

		if (link_facts(row, link, &errors, &has_errors)) {
			active += json_is_true(json_object_get(row, "active"));
			json_array_append(list, row);
		} else {
			(void)number_of(json_object_get(link, "nvlink_state"), -1, &v, &why);
		}
		json_decref(row);
	}
	/* The device's totals count the same events as the counters of the links. They are used if the links
	 * have none. */
	for (i = 0; i < 4 && !json_array_size(list); i++) {
		if (number_of(json_object_get(json_object_get(raw, "fields"), totals[i]), -1, &v, &unused)) {
			errors += v;
			has_errors = true;
		}
	}
	if (json_array_size(list)) {
		if (!number_of(json_object_get(json_object_get(raw, "fields"), "nvlink_count"), -1, &count,
			       &unused) ||
		    count < (double)json_array_size(list))
			count = (double)json_array_size(list);
		set_fact(gpu, "nvlink_count", count);
		set_fact(gpu, "nvlink_active", active);
		json_object_set(gpu, "links", list);
		v = json_number_value(json_object_get(json_array_get(list, 0), "rate_gbps"));
		if (v > 0 && !json_object_get(json_object_get(gpu, "facts"), "nvlink_rate_gbps"))
			set_fact(gpu, "nvlink_rate_gbps", v);
	} else {
		set_why(gpu, "nvlink_active", why);
	}
	if (has_errors)
		set_fact(gpu, "nvlink_errors", errors);
	json_decref(list);
}

/* If a link is faster than its own maximum, one of the two answers is wrong, and it is unknown which. Neither
 * is stored. */
static void refuse_link(json_t *gpu, const char *fact, const char *most)
{
	json_t *facts = json_object_get(gpu, "facts");
	const json_t *now = json_object_get(facts, fact), *max = json_object_get(facts, most);
	char why[160];

	if (!json_is_number(now) || !json_is_number(max) || json_number_value(now) <= json_number_value(max))
		return;
	snprintf(why, sizeof(why), "%s answered %.10g of at most %.10g, " FACTS_IMPOSSIBLE,
		 plausible_of(fact)->function, json_number_value(now), json_number_value(max));
	json_object_del(facts, fact);
	json_object_del(facts, most);
	set_why(gpu, fact, why);
	set_why(gpu, most, why);
}

void facts_gpu_nvml(json_t *gpu, const json_t *raw)
{
	const json_t *calls = json_object_get(raw, "calls");

	text_facts(gpu, calls);
	table_facts(gpu, raw);
	refuse_link(gpu, "pcie_width", "pcie_width_max");
	refuse_link(gpu, "pcie_gen", "pcie_gen_max");
	odd_facts(gpu, calls);
	process_facts(gpu, calls);
	nvlink_facts(gpu, raw);
}
