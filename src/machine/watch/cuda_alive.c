/* SPDX-License-Identifier: Apache-2.0 */
/* Checks with CUDA whether a GPU works that NVML reports as lost: data is written to its memory and read
 * back. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "machine/watch/watch.h"
#include "vendor/lib.h"

/* clang-format off */
#define FUNCTIONS(X) \
	X(REQUIRED, int, init, cuInit, (unsigned int)) \
	X(REQUIRED, int, by_pci, cuDeviceGetByPCIBusId, (int *, const char *)) \
	X(REQUIRED, int, retain, cuDevicePrimaryCtxRetain, (void **, int)) \
	X(REQUIRED, int, release, cuDevicePrimaryCtxRelease_v2, (int)) \
	X(REQUIRED, int, set, cuCtxSetCurrent, (void *)) \
	X(REQUIRED, int, mem_alloc, cuMemAlloc_v2, (unsigned long long *, size_t)) \
	X(REQUIRED, int, mem_free, cuMemFree_v2, (unsigned long long)) \
	X(REQUIRED, int, to_device, cuMemcpyHtoD_v2, (unsigned long long, const void *, size_t)) \
	X(REQUIRED, int, to_host, cuMemcpyDtoH_v2, (void *, unsigned long long, size_t))
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

static json_t *why(const char *call, int code)
{
	return json_sprintf("%s answers %d", call, code);
}

/* Needs a current context. NULL: memory reads back as it was written. */
static json_t *round_trip(const struct driver *d)
{
	static const char written[16] = "does it answer?";
	unsigned long long memory = 0;
	char read[sizeof(written)] = "";
	const char *call = "cuMemAlloc_v2";
	int ret = d->mem_alloc(&memory, sizeof(written));

	if (ret)
		return why(call, ret);
	call = "cuMemcpyHtoD_v2";
	ret = d->to_device(memory, written, sizeof(written));
	if (!ret) {
		call = "cuMemcpyDtoH_v2";
		ret = d->to_host(read, memory, sizeof(read));
	}
	d->mem_free(memory);
	if (ret)
		return why(call, ret);
	return memcmp(written, read, sizeof(read))
		       ? json_string("its memory does not return the bytes written to it")
		       : NULL;
}

static json_t *ask(const struct driver *d, const char *pci)
{
	void *context = NULL;
	int device = 0, ret = d->init(0);
	json_t *said;

	if (ret)
		return why("cuInit", ret);
	ret = d->by_pci(&device, pci);
	if (ret)
		return why("cuDeviceGetByPCIBusId", ret);
	ret = d->retain(&context, device);
	if (ret)
		return why("cuDevicePrimaryCtxRetain", ret);
	ret = d->set(context);
	said = ret ? why("cuCtxSetCurrent", ret) : round_trip(d);
	d->release(device);
	return said;
}

/* Whether the error says nothing about the GPU: its memory is full, another process uses it exclusively, or
 * the driver was replaced. */
static bool says_nothing(const char *said)
{
	static const char *const codes[] = {" answers 2", " answers 46", " answers 803", " answers 804"};
	size_t n = strlen(said), k;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		k = strlen(codes[i]);
		if (n >= k && !strcmp(said + n - k, codes[i]))
			return true;
	}
	return false;
}

json_t *watch_alive(const char *pci)
{
	json_t *answer = json_object(), *said;
	struct lib_fact fact;
	struct driver d;

	if (lib_open(&d, &spec, NULL, &fact, NULL)) {
		json_object_set_new(answer, "missing",
				    json_string(fact.missing ? fact.missing : "not found"));
		lib_fact_release(&fact);
		return answer;
	}
	lib_fact_release(&fact);
	said = ask(&d, pci);
	if (said)
		json_object_set_new(answer, says_nothing(json_string_value(said)) ? "missing" : "why", said);
	return answer;
}
