/* SPDX-License-Identifier: Apache-2.0 */
/* Device attributes by number, without a context. The function table is smaller than that of vendor/cuda.h,
 * so that facts can also be read from drivers that are too old for our kernels. */
#include <stddef.h>
#include "machine/raw/raw.h"
#include "vendor/lib.h"

/* clang-format off */
#define FUNCTIONS(X) \
	X(REQUIRED, int, init, cuInit, (unsigned int)) \
	X(REQUIRED, int, driver_version, cuDriverGetVersion, (int *)) \
	X(REQUIRED, int, count, cuDeviceGetCount, (int *)) \
	X(REQUIRED, int, get, cuDeviceGet, (int *, int)) \
	X(REQUIRED, int, name, cuDeviceGetName, (char *, int, int)) \
	X(REQUIRED, int, memory, cuDeviceTotalMem_v2, (size_t *, int)) \
	X(REQUIRED, int, attribute, cuDeviceGetAttribute, (int *, int, int)) \
	X(REQUIRED, int, pci, cuDeviceGetPCIBusId, (char *, int, int)) \
	X(OPTIONAL, int, uuid, cuDeviceGetUuid, (unsigned char *, int))
/* clang-format on */

struct driver {
#define X(need, ret, field, symbol, params) ret(*field) params;
	FUNCTIONS(X)
#undef X
};

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct driver, field), LIB_NEED_##need},
	FUNCTIONS(X)
#undef X
};
static const char *const sonames[] = {"libcuda.so.1", NULL};
static const struct lib_spec spec = {.name = "cuda",
				     .sonames = sonames,
				     .symbols = symbols,
				     .symbol_count = sizeof(symbols) / sizeof(symbols[0]),
				     .table_size = sizeof(struct driver)};

enum { ATTRIBUTES_MAX = 150 }; /* CUDA 13 has 148 */

static void uuid_text(char out[48], const unsigned char u[16])
{
	size_t n = (size_t)snprintf(out, 48, "GPU-");

	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(out + n, 48 - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static json_t *read_device(const struct driver *d, int index)
{
	json_t *gpu = json_object(), *attributes = json_object();
	unsigned char uuid[16] = {0};
	char text[128] = "", key[16];
	size_t bytes = 0;
	int device = 0, value = 0, ret = d->get(&device, index);

	json_object_set_new(gpu, "get", json_pack("[i]", ret));
	json_object_set_new(gpu, "attributes", attributes);
	if (ret)
		return gpu;
	ret = d->pci(text, sizeof(text), device);
	json_object_set_new(gpu, "pci", json_pack(ret ? "[i]" : "[i,s]", ret, text));
	text[0] = 0;
	ret = d->name(text, sizeof(text), device);
	json_object_set_new(gpu, "name", json_pack(ret ? "[i]" : "[i,s]", ret, text));
	ret = d->memory(&bytes, device);
	json_object_set_new(gpu, "memory", json_pack("[i,I]", ret, (json_int_t)bytes));
	if (d->uuid) {
		ret = d->uuid(uuid, device);
		uuid_text(text, uuid);
		json_object_set_new(gpu, "uuid", json_pack(ret ? "[i]" : "[i,s]", ret, text));
	}
	for (int a = 1; a <= ATTRIBUTES_MAX; a++) {
		if (d->attribute(&value, a, device))
			continue;
		snprintf(key, sizeof(key), "%d", a);
		json_object_set_new(attributes, key, json_integer(value));
	}
	return gpu;
}

json_t *raw_cuda(void)
{
	json_t *raw = json_pack("{s:s,s:{},s:[]}", "layer", "cuda", "library", "gpus");
	json_t *library = json_object_get(raw, "library");
	struct lib_fact fact;
	struct driver d;
	int ret, count = 0, version = 0;

	if (lib_open(&d, &spec, NULL, &fact, NULL)) {
		json_object_set_new(library, "missing",
				    json_string(fact.missing ? fact.missing : "not found"));
		lib_fact_release(&fact);
		return raw;
	}
	json_object_set_new(library, "path", json_string(fact.path ? fact.path : ""));
	lib_fact_release(&fact);
	ret = d.driver_version(&version);
	json_object_set_new(raw, "driver_version", json_pack("[i,i]", ret, version));
	ret = d.init(0);
	json_object_set_new(raw, "init", json_integer(ret));
	if (ret)
		return raw;
	ret = d.count(&count);
	json_object_set_new(raw, "count", json_pack("[i,i]", ret, count));
	for (int i = 0; !ret && i < count && i < 256; i++)
		json_array_append_new(json_object_get(raw, "gpus"), read_device(&d, i));
	return raw;
}
