/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of the node: versions of driver and libraries, and whether they fit together. */
#include "core/text/text.h"
#include "probe/shared/reading.h"

#define FIELDS(X)                                                                                            \
	X(driver_version, "", TEXT, 0, "release of the NVIDIA driver")                                       \
	X(nvml_version, "", TEXT, 0, "release of NVML, the driver's library")                                \
	X(driver_module_matches, "", U64, 1, "kernel module and libraries have the same release (1)")        \
	X(driver_cuda_version, "", U64, 0,                                                                   \
	  "newest CUDA version that the driver supports, 1000 * major + 10 * minor")                         \
	X(cuda_version, "", U64, 0, "version of the CUDA runtime found, 1000 * major + 10 * minor")          \
	X(version_cudart, "", TEXT, 0, "CUDA runtime")                                                       \
	X(version_cublas, "", TEXT, 0, "cuBLAS")                                                             \
	X(version_cublaslt, "", TEXT, 0, "cuBLASLt")                                                         \
	X(version_cudnn, "", TEXT, 0, "cuDNN")                                                               \
	X(version_nccl, "", TEXT, 0, "NCCL")                                                                 \
	X(version_cupti, "", TEXT, 0, "CUPTI")                                                               \
	X(library_missing, "", TEXT, 0, "libraries for GPUs that were not found")

static const struct field fields[] = {FIELDS(FIELD_ROW)};
enum { FIELDS(READING_PLACE) COUNT };

static const struct {
	const char *name;
	unsigned field;
} libraries[] = {
	{"cudart", AT_version_cudart}, {"cublas", AT_version_cublas}, {"cublaslt", AT_version_cublaslt},
	{"cudnn", AT_version_cudnn},   {"nccl", AT_version_nccl},     {"cupti", AT_version_cupti},
};

/* Converts "13.0" to 13000 and "12.8.90" to 12080. */
static bool cuda_number(const char *text, uint64_t *out)
{
	unsigned major, minor;

	if (!text || sscanf(text, "%u.%u", &major, &minor) != 2 || major > 1000 || minor > 99)
		return false;
	*out = 1000u * major + 10u * minor;
	return true;
}

/* NVML's version is the major version of its API followed by the driver release: "13.580.159.04" for driver
 * 580.159.04. */
static void compare_releases(const struct machine *m, const json_t *driver, struct result *out)
{
	const char *module = json_string_value(json_object_get(driver, "kernel_module"));
	const char *nvml = json_string_value(json_object_get(driver, "nvml_version"));
	const char *release = nvml ? strchr(nvml, '.') : NULL;
	unsigned i;

	/* If the releases differ, NVML does not start, and its GPUs have this cause. */
	for (i = 0; i < machine_gpu_count(m); i++)
		if (machine_gpu(m, i)->cause == CAUSE_VERSION_MISMATCH) {
			result_u64(out, &fields[AT_driver_module_matches], 0);
			return;
		}
	if (module && release && strspn(release + 1, "0123456789.") == strlen(release + 1))
		result_u64(out, &fields[AT_driver_module_matches], strstr(module, release + 1) != NULL);
}

static void name_libraries(const struct machine *m, struct result *out)
{
	struct text missing = {0};
	uint64_t number;
	size_t i;

	for (i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		const struct lib_found *found = machine_lib(m, libraries[i].name);

		if (!found)
			continue; /* assay did not look for it */
		if (found->status)
			text_addf(&missing, "%s%s", missing.size ? ", " : "", libraries[i].name);
		else
			result_text(out, &fields[libraries[i].field],
				    found->version[0] ? found->version : "found");
	}
	if (machine_lib(m, "cudart") && cuda_number(machine_lib(m, "cudart")->version, &number))
		result_u64(out, &fields[AT_cuda_version], number);
	if (missing.size && !missing.failed)
		result_text(out, &fields[AT_library_missing], missing.data);
	text_release(&missing);
}

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const json_t *driver = json_object_get(machine_json(m), "driver");
	enum cause cause = CAUSE_NONE;
	uint64_t number;
	const char *why;

	(void)t, (void)opts;
	if (!reading_has_gpus(m, "driver and libraries", err))
		return STATUS_UNSUPPORTED;
	result_text(out, &fields[AT_driver_version], json_string_value(json_object_get(driver, "version")));
	result_text(out, &fields[AT_nvml_version],
		    json_string_value(json_object_get(driver, "nvml_version")));
	if (cuda_number(json_string_value(json_object_get(driver, "cuda_version")), &number))
		result_u64(out, &fields[AT_driver_cuda_version], number);
	compare_releases(m, driver, out);
	name_libraries(m, out);
	if (result_has(out, &fields[AT_driver_version]) || result_has(out, &fields[AT_nvml_version]))
		return STATUS_OK;
	why = reading_layer_failed(m, "NVML", &cause);
	if (why && cause != CAUSE_DRIVER_MISSING)
		return error_set_cause(err, STATUS_UNAVAILABLE, cause, "driver and libraries: NVML: %s", why);
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_DRIVER_MISSING,
			       "driver and libraries: no NVIDIA driver is loaded");
}

const struct probe probe_versions = {
	.name = "versions",
	.summary = "versions of driver and libraries, and whether they fit together",
	.kind = PROBE_READING,
	.reads = TARGET_NODE,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
