/* SPDX-License-Identifier: Apache-2.0 */
/* The list of GPUs, merged by PCI address from the PCI bus, the driver's folder in /proc, NVML and CUDA. */
#include <ctype.h>
#include "core/text/text.h"
#include "machine/facts/facts.h"
#include "vendor/nvml.h"

static json_t *gpu_by_pci(json_t *gpus, const char *pci)
{
	json_t *gpu;
	size_t i;

	json_array_foreach(gpus, i, gpu)
	{
		const char *has = json_string_value(json_object_get(gpu, "pci"));

		if (has && *has && !strcmp(has, pci))
			return gpu;
	}
	return NULL;
}

static json_t *add_gpu(json_t *gpus, const char *pci)
{
	json_t *gpu = json_pack("{s:s,s:{},s:{}}", "pci", pci, "facts", "unreadable");

	if (gpu)
		json_array_append_new(gpus, gpu);
	return gpu;
}

static void set_status(json_t *gpu, enum status status, enum cause cause, const char *reason)
{
	json_object_set_new(gpu, "status", json_string(status_name(status)));
	json_object_set_new(gpu, "cause", json_string(cause_name(cause)));
	facts_set_text(gpu, "reason", reason);
}

static bool was_lost(const json_t *raw)
{
	static const char *const keys[] = {"pci", "name", "uuid", "clock_sm", "power", "temperature"};
	json_int_t code = json_integer_value(json_array_get(json_object_get(raw, "by_index"), 0));

	if (code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED)
		return true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		code = json_integer_value(
			json_array_get(json_object_get(json_object_get(raw, "calls"), keys[i]), 0));
		if (code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED)
			return true;
	}
	return false;
}

/* NVML does not give the address of a lost GPU. It is taken to be the first GPU on the bus that no other
 * entry has. */
static void place_lost(json_t *gpus, size_t nvml_index)
{
	json_t *gpu, *found = NULL;
	char reason[96];
	size_t i;

	json_array_foreach(gpus, i, gpu)
	{
		if (!found && !json_object_get(gpu, "nvml_index"))
			found = gpu;
	}
	if (!found)
		found = add_gpu(gpus, "");
	json_object_set_new(found, "nvml_index", json_integer((json_int_t)nvml_index));
	snprintf(reason, sizeof(reason), "NVML lists GPU %zu, but it does not answer (GPU is lost)",
		 nvml_index);
	set_status(found, STATUS_LOST, CAUSE_GPU_LOST, reason);
}

static void merge_nvml(json_t *gpus, const json_t *nvml)
{
	const json_t *list = json_object_get(nvml, "gpus"), *raw;
	size_t i;

	for (int pass = 0; pass < 2; pass++) {
		json_array_foreach((json_t *)list, i, raw)
		{
			const json_t *pci =
				json_array_get(json_object_get(json_object_get(raw, "calls"), "pci"), 1);
			const char *bus_id = json_string_value(json_object_get(pci, "bus_id"));
			char address[16] = "";
			json_t *gpu;

			if (!bus_id || !nvml_pci_text(address, bus_id)) {
				if (pass)
					place_lost(gpus, i);
				continue;
			}
			if (pass)
				continue;
			gpu = gpu_by_pci(gpus, address);
			if (!gpu)
				gpu = add_gpu(gpus, address);
			json_object_set_new(gpu, "nvml_index", json_integer((json_int_t)i));
			if (!json_object_get(gpu, "pci_device"))
				json_object_set(gpu, "pci_device", json_object_get(pci, "device"));
			if (!json_object_get(gpu, "pci_subsystem"))
				json_object_set(gpu, "pci_subsystem", json_object_get(pci, "subsystem"));
			facts_gpu_nvml(gpu, raw);
			if (was_lost(raw))
				set_status(gpu, STATUS_LOST, CAUSE_GPU_LOST,
					   "listed by NVML, but it does not answer");
			else
				set_status(gpu, STATUS_OK, CAUSE_NONE, NULL);
		}
	}
}

static void add_cuda(json_t *gpu, const json_t *raw)
{
	/* Attribute numbers of cuDeviceGetAttribute. */
	static const struct {
		const char *fact, *attribute;
		double scale;
	} rows[] = {{"sm_count", "16", 1},
		    {"bus_bits", "37", 1},
		    {"l2_bytes", "38", 1},
		    {"smem_optin_bytes", "97", 1},
		    {"copy_engines", "40", 1},
		    {"sm_clock_max_mhz", "13", 1e-3},
		    {"memory_clock_max_mhz", "36", 1e-3},
		    {"ecc_enabled", "32", 1}};
	const json_t *attributes = json_object_get(raw, "attributes"), *v;
	json_t *facts = json_object_get(gpu, "facts");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = json_object_get(attributes, rows[i].attribute);
		if (json_is_number(v) && !json_object_get(facts, rows[i].fact))
			facts_gpu_set(gpu, rows[i].fact, json_number_value(v) * rows[i].scale,
				      "cuDeviceGetAttribute");
	}
	v = json_object_get(attributes, "75");
	if (json_is_number(v) && !json_object_get(facts, "cc"))
		facts_set_number(facts, "cc",
				 10 * json_number_value(v) +
					 json_number_value(json_object_get(attributes, "76")));
	v = json_array_get(json_object_get(raw, "memory"), 1);
	if (json_is_number(v) && !json_object_get(facts, "memory_bytes"))
		facts_gpu_set(gpu, "memory_bytes", json_number_value(v), "cuDeviceTotalMem_v2");
	if (!json_object_get(gpu, "name"))
		facts_set_text(gpu, "name",
			       json_string_value(json_array_get(json_object_get(raw, "name"), 1)));
	if (!json_object_get(gpu, "uuid"))
		facts_set_text(gpu, "uuid",
			       json_string_value(json_array_get(json_object_get(raw, "uuid"), 1)));
}

static void merge_cuda(json_t *gpus, const json_t *cuda)
{
	const json_t *raw;
	size_t i;

	json_array_foreach((json_t *)json_object_get(cuda, "gpus"), i, raw)
	{
		const char *bus_id = json_string_value(json_array_get(json_object_get(raw, "pci"), 1));
		char address[16];
		json_t *gpu;

		if (!bus_id || !nvml_pci_text(address, bus_id))
			continue;
		gpu = gpu_by_pci(gpus, address);
		if (!gpu)
			gpu = add_gpu(gpus, address);
		json_object_set_new(gpu, "cuda_index", json_integer((json_int_t)i));
		add_cuda(gpu, raw);
		if (!json_object_get(gpu, "status"))
			set_status(gpu, STATUS_OK, CAUSE_NONE, NULL);
	}
}

/* Reads /proc/driver/nvidia: the driver's version, without any library, and whether profiling is restricted.
 */
static void read_driver(struct facts *f, json_t *driver, json_t *gpus)
{
	const char *version = source_text(f->source, "/proc/driver/nvidia/version");
	const char *params = source_text(f->source, "/proc/driver/nvidia/params");
	char value[96];
	double restricted = 0;
	json_t *gpu;
	size_t i;

	json_object_set_new(driver, "loaded", json_boolean(version != NULL));
	if (version) {
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(version, "\n"), version);
		facts_set_text(driver, "kernel_module", value);
		for (const char *p = version; *p && *p != '\n'; p++) {
			size_t n = strspn(p, "0123456789.");

			if (n >= 5 && isdigit((unsigned char)*p) && (p == version || p[-1] == ' ') &&
			    memchr(p, '.', n)) {
				snprintf(value, sizeof(value), "%.*s", (int)n, p);
				facts_set_text(driver, "version", value);
				break;
			}
		}
	}
	/* Many virtual machines with one GPU load the driver with this option: the links exist but are
	 * switched off. */
	if (facts_line(params, "NvLinkDisable", ':', value, sizeof(value)) &&
	    facts_number(value, &restricted))
		json_object_set_new(driver, "nvlink_disabled", json_boolean(restricted != 0));
	if (!facts_line(params, "RmProfilingAdminOnly", ':', value, sizeof(value)) ||
	    !facts_number(value, &restricted))
		return;
	json_object_set_new(driver, "profiling_restricted", json_boolean(restricted != 0));
	json_array_foreach(gpus, i, gpu)
		facts_set_number(json_object_get(gpu, "facts"), "cuda_profiling_restricted", restricted != 0);
}

/* Reads the minor number of each GPU, that of /dev/nvidiaN. */
static void read_minors(struct facts *f, json_t *gpus, const json_t *nvml)
{
	json_t *gpu;
	size_t i;

	json_array_foreach(gpus, i, gpu)
	{
		const char *pci = json_string_value(json_object_get(gpu, "pci")), *text;
		const json_t *index = json_object_get(gpu, "nvml_index"), *minor;
		char value[32];
		double number;

		text = pci && *pci ? source_textf(f->source, "/proc/driver/nvidia/gpus/%s/information", pci)
				   : NULL;
		minor = index ? json_object_get(
					json_object_get(json_array_get(json_object_get(nvml, "gpus"),
								       (size_t)json_integer_value(index)),
							"calls"),
					"minor")
			      : NULL;
		if (json_is_integer(json_array_get(minor, 1)))
			json_object_set(gpu, "minor", json_array_get(minor, 1));
		else if (text && facts_line(text, "Device Minor", ':', value, sizeof(value)) &&
			 facts_number(value, &number))
			facts_set_number(gpu, "minor", number);
		if (text && !json_object_get(gpu, "vbios") &&
		    facts_line(text, "Video BIOS", ':', value, sizeof(value)) && !strchr(value, '?'))
			facts_set_text(gpu, "vbios", value);
		if (text && !json_object_get(gpu, "name")) {
			char name[96];

			if (facts_line(text, "Model", ':', name, sizeof(name)))
				facts_set_text(gpu, "name", name);
		}
	}
}

/* Explains why a GPU on the bus is not among those that answered. */
static void judge_silent(struct facts *f, json_t *gpu, const json_t *nvml, const json_t *gpus)
{
	const char *pci = json_string_value(json_object_get(gpu, "pci"));
	char why[140], reason[160];
	enum cause cause;

	if (f->up_to < LAYER_NVML) {
		set_status(gpu, STATUS_OK, CAUSE_NONE, NULL);
	} else if (facts_layer_failed(f, LAYER_NVML, nvml, gpus, &cause, why, sizeof(why))) {
		snprintf(reason, sizeof(reason), "%s%s", nvml ? "" : "NVML: ", why);
		set_status(gpu, STATUS_UNAVAILABLE, cause, reason);
	} else if (json_object_get(json_object_get(f->tree, "system"), "container") &&
		   !source_textf(f->source, "/proc/driver/nvidia/gpus/%s/information", pci)) {
		set_status(gpu, STATUS_UNAVAILABLE, CAUSE_NOT_GRANTED,
			   "on the PCI bus, but not passed into this container");
	} else {
		set_status(gpu, STATUS_UNAVAILABLE, CAUSE_GPU_MISSING,
			   "on the PCI bus, but the driver that answers for others does not list it");
	}
}

static void read_versions(json_t *driver, const json_t *nvml, const json_t *cuda)
{
	static const struct {
		const char *key, *name;
	} texts[] = {{"driver_version", "version"}, {"nvml_version", "nvml_version"}};
	const json_t *calls = json_object_get(nvml, "calls"), *value;
	json_int_t version;
	char text[32];

	for (size_t i = 0; i < 2; i++)
		facts_set_text(driver, texts[i].name,
			       json_string_value(json_array_get(json_object_get(calls, texts[i].key), 1)));
	value = json_array_get(json_object_get(calls, "cuda_version"), 1);
	if (!value)
		value = json_array_get(json_object_get(cuda, "driver_version"), 1);
	version = json_integer_value(value);
	if (version > 0) {
		snprintf(text, sizeof(text), "%d.%d", (int)(version / 1000), (int)(version % 1000 / 10));
		facts_set_text(driver, "cuda_version", text);
	}
	value = json_object_get(nvml, "library");
	if (value)
		json_object_set(driver, "nvml", (json_t *)value);
	value = json_object_get(cuda, "library");
	if (value)
		json_object_set(driver, "libcuda", (json_t *)value);
}

static int by_pci(const void *a, const void *b)
{
	const char *left = json_string_value(json_object_get(*(json_t *const *)a, "pci"));
	const char *right = json_string_value(json_object_get(*(json_t *const *)b, "pci"));

	if (!left[0] != !right[0])
		return left[0] ? -1 : 1; /* a GPU without an address comes last */
	if (strlen(left) != strlen(right))
		return strlen(left) < strlen(right) ? -1 : 1;
	return strcmp(left, right);
}

static json_t *sorted(json_t *gpus)
{
	size_t count = json_array_size(gpus);
	json_t **row = calloc(count ? count : 1, sizeof(*row)), *list = json_array();

	for (size_t i = 0; row && i < count; i++)
		row[i] = json_array_get(gpus, i);
	if (row)
		qsort(row, count, sizeof(*row), by_pci);
	for (size_t i = 0; row && i < count; i++)
		json_array_append(list, row[i]);
	free(row);
	json_decref(gpus);
	return list;
}

/* Whether NVML or CUDA lists a GPU that is not lost; then its driver is loaded. */
static bool any_answers(const json_t *gpus)
{
	const json_t *gpu;
	size_t i;

	json_array_foreach((json_t *)gpus, i, gpu)
	{
		const char *status = json_string_value(json_object_get(gpu, "status"));

		if (status && !strcmp(status, status_name(STATUS_OK)))
			return true;
	}
	return false;
}

/* If GPUs are present but a vendor's layer gave no answer, adds that to the list of facts that could not be
 * read. */
static void note_layer(struct facts *f, enum layer layer, const char *what, const json_t *raw,
		       const json_t *gpus)
{
	char why[160];
	enum cause cause;

	if (f->up_to >= layer && facts_layer_failed(f, layer, raw, gpus, &cause, why, sizeof(why)))
		facts_unreadable(f, what, cause, why);
}

static bool noted(const struct facts *f, const char *why)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(f->tree, "unreadable"), i, row)
	{
		const char *other = json_string_value(json_object_get(row, "why"));

		if (other && !strncmp(other, why, strcspn(why, " ")))
			return true;
	}
	return false;
}

/* If a vendor function returned impossible values, names it once, with the first GPU and fact. */
static void note_impossible(struct facts *f, const json_t *gpus)
{
	const json_t *gpu, *why;
	const char *fact;
	char what[80];
	size_t i;

	json_array_foreach((json_t *)gpus, i, gpu)
	{
		json_object_foreach(json_object_get(gpu, "unreadable"), fact, why)
		{
			const char *text = json_string_value(why);

			if (!text || !strstr(text, FACTS_IMPOSSIBLE) || noted(f, text))
				continue;
			snprintf(what, sizeof(what), "GPU %s %s",
				 json_string_value(json_object_get(gpu, "pci")), fact);
			facts_unreadable(f, what, CAUSE_VENDOR_CALL, text);
		}
	}
}

void facts_gpus(struct facts *f)
{
	json_t *gpus = facts_pci_gpus(f), *driver = json_object(), *gpu;
	const json_t *nvml = NULL, *cuda = NULL, *nodes;
	size_t i;

	if (f->up_to >= LAYER_NVML)
		nvml = source_layer(f->source, LAYER_NVML);
	if (f->up_to >= LAYER_CUDA)
		cuda = source_layer(f->source, LAYER_CUDA);
	read_driver(f, driver, gpus);
	merge_nvml(gpus, nvml);
	merge_cuda(gpus, cuda);
	gpus = sorted(gpus);
	if (json_array_size(gpus)) {
		note_layer(f, LAYER_NVML, "NVML", nvml, gpus);
		note_layer(f, LAYER_CUDA, "CUDA driver", cuda, gpus);
	}
	note_impossible(f, gpus);
	if (any_answers(gpus)) /* even if /proc shows no driver in a container */
		json_object_set_new(driver, "loaded", json_true());
	json_object_set_new(f->tree, "gpus", gpus);
	json_object_set_new(f->tree, "driver", driver);
	read_minors(f, gpus, nvml);
	read_versions(driver, nvml, cuda);
	json_array_foreach(gpus, i, gpu)
	{
		if (!json_object_get(gpu, "status"))
			judge_silent(f, gpu, nvml, gpus);
	}
	if (json_object_get(nvml, "topology"))
		json_object_set(f->tree, "gpu_topology", json_object_get(nvml, "topology"));
	nodes = source_value(f->source, "device_nodes");
	if (nodes)
		json_object_set(f->tree, "device_nodes", (json_t *)nodes);
	facts_granted(f, gpus);
}
