/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the counters that must not change during a run. The answers go through the parser of the facts, so
 * names and meanings of the counters are the same. */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include "core/clock.h"
#include "machine/facts/facts.h"
#include "machine/raw/nvml.h"
#include "machine/watch/watch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Names of GPU_FACTS that only grow. */
static const char *const counters[] = {
	"ecc_volatile_uncorrected",
	"ecc_aggregate_uncorrected",
	"ecc_volatile_corrected",
	"ecc_aggregate_corrected",
	"remapped_correctable",
	"remapped_uncorrectable",
	"retired_pages",
	"pcie_replays",
	"nvlink_errors",
};
static const char *const states[] = {"remap_pending", "remap_failed", "recovery_action"};
/* Names of telemetry signals. */
static const char *const signals[] = {"sm_clock_mhz", "temperature_c", "clock_reasons"};
/* NVML's fields in ns, reported as counters in s. */
static const struct {
	const char *field, *name;
} times[] = {
	{"violation_hw_thermal", "violation_hw_thermal_s"},
	{"violation_power_brake", "violation_power_brake_s"},
	{"violation_power", "violation_power_s"},
};

static void pick(json_t *into, const json_t *facts, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		json_t *value = json_object_get(facts, names[i]);

		if (json_is_number(value))
			json_object_set(into, names[i], value);
	}
}

static void pick_times(json_t *into, const json_t *fields)
{
	for (size_t i = 0; i < COUNT(times); i++) {
		const json_t *ns = json_array_get(json_object_get(fields, times[i].field), 1);

		if (json_is_number(ns))
			facts_set_number(into, times[i].name, json_number_value(ns) * 1e-9);
	}
}

/* {"link 3": 12}: errors per link, for links that have any. */
static void pick_links(json_t *into, const json_t *links)
{
	static const char *const errors[] = {"error_replay", "error_recovery", "error_crc",
					     "effective_errors", "symbol_errors"};
	const json_t *link;
	char name[32];
	size_t i;

	json_array_foreach((json_t *)links, i, link)
	{
		double sum = 0;

		for (size_t k = 0; k < COUNT(errors); k++)
			sum += json_number_value(json_object_get(link, errors[k]));
		snprintf(name, sizeof(name), "link %lld",
			 (long long)json_integer_value(json_object_get(link, "link")));
		if (sum > 0)
			facts_set_number(into, name, sum);
	}
}

/* The first code that shows that NVML refuses all calls for the device; 0: it answers. */
static int refusal(const json_t *raw)
{
	static const char *const calls[] = {"pci", "clock_sm", "reasons", "temperature"};
	json_int_t code = json_integer_value(json_array_get(json_object_get(raw, "by_index"), 0));

	for (size_t i = 0; !code && i < COUNT(calls); i++) {
		json_int_t one = json_integer_value(
			json_array_get(json_object_get(json_object_get(raw, "calls"), calls[i]), 0));

		if (one == NVML_ERROR_GPU_IS_LOST || one == NVML_ERROR_RESET_REQUIRED ||
		    (one && !strcmp(calls[i], "pci")))
			code = one;
	}
	return (int)code;
}

static json_t *reading_of(const json_t *raw, uint64_t t_ns)
{
	json_t *gpu = json_pack("{s:{}, s:{}}", "facts", "unreadable"), *facts;
	json_t *out = json_pack("{s:I, s:{}, s:{}, s:{}, s:{}}", "t_ns", (json_int_t)t_ns, "counters",
				"states", "signals", "errors");
	int code = refusal(raw);
	enum cause cause;

	if (code) {
		nvml_status((nvmlReturn_t)code, &cause);
		facts_set_text(out, "why", nvml_code_text(code));
		facts_set_text(out, "cause", cause_name(cause));
		json_decref(gpu);
		return out;
	}
	facts_gpu_nvml(gpu, raw);
	facts = json_object_get(gpu, "facts");
	pick(json_object_get(out, "counters"), facts, counters, COUNT(counters));
	pick_times(json_object_get(out, "counters"), json_object_get(raw, "fields"));
	pick(json_object_get(out, "states"), facts, states, COUNT(states));
	pick(json_object_get(out, "signals"), facts, signals, COUNT(signals));
	pick_links(json_object_get(out, "errors"), json_object_get(gpu, "links"));
	json_decref(gpu);
	return out;
}

struct reader {
	const struct nvml *nvml;
	unsigned index;
	json_t *reading;
	pthread_t thread;
	bool started;
};

static void *read_in_thread(void *arg)
{
	const struct clock *clock = clock_monotonic();
	struct reader *r = arg;
	uint64_t before = clock_now_ns(clock);
	nvmlDevice_t device;
	json_t *raw = raw_nvml_gpu(r->nvml, r->index);

	if (!r->nvml->by_index(r->index, &device))
		raw_nvml_violations(r->nvml, device, json_object_get(raw, "fields"));
	r->reading = reading_of(raw, before + (clock_now_ns(clock) - before) / 2);
	json_decref(raw);
	return NULL;
}

/* Finds the GPU in NVML's list. NVML_ERROR_NOT_FOUND: NVML described all devices that it lists, and this one
 * is not among them. Any other code: NVML did not describe some device, which may be this one. */
static nvmlReturn_t find(const struct nvml *n, unsigned count, const char *pci, unsigned *index)
{
	nvmlReturn_t refused = NVML_ERROR_NOT_FOUND;

	for (unsigned i = 0; i < count; i++) {
		nvmlPciInfo_t info = {0};
		nvmlDevice_t device;
		char address[16];
		nvmlReturn_t ret = n->by_index(i, &device);

		if (!ret)
			ret = n->pci(device, &info);
		if (ret)
			refused = ret;
		else if (nvml_pci_text(address, info.busId) && !strcmp(address, pci)) {
			*index = i;
			return NVML_SUCCESS;
		}
	}
	return refused;
}

/* The answer for a GPU that NVML does not describe. `ret` is the result of find(). */
static json_t *not_found(nvmlReturn_t ret)
{
	enum cause cause = CAUSE_GPU_LOST;

	if (ret == NVML_ERROR_NOT_FOUND || ret == NVML_ERROR_GPU_NOT_FOUND)
		return json_pack("{s:s, s:s}", "why", "NVML no longer lists it", "cause", cause_name(cause));
	cause = CAUSE_VENDOR_CALL;
	nvml_status(ret, &cause);
	return json_pack("{s:s, s:s}", "why", nvml_code_text((int)ret), "cause", cause_name(cause));
}

/* In parallel, because most of a GPU's time is waiting for firmware. */
static json_t *read_all(const struct nvml *n, unsigned listed, const char *const *pci, size_t count)
{
	struct reader *r = calloc(count ? count : 1, sizeof(*r));
	json_t *gpus = json_object();

	for (size_t i = 0; r && i < count; i++) {
		nvmlReturn_t ret = find(n, listed, pci[i], &r[i].index);

		r[i].nvml = n;
		if (ret) {
			json_object_set_new(gpus, pci[i], not_found(ret));
			continue;
		}
		r[i].started = !pthread_create(&r[i].thread, NULL, read_in_thread, &r[i]);
		if (!r[i].started)
			read_in_thread(&r[i]);
	}
	for (size_t i = 0; r && i < count; i++) {
		if (r[i].started)
			pthread_join(r[i].thread, NULL);
		if (r[i].reading)
			json_object_set_new(gpus, pci[i], r[i].reading);
	}
	free(r);
	return gpus;
}

/* Opens NVML and counts its GPUs, at most 256. Returns NULL, and then the caller ends it with n->shutdown().
 * Else
 * {"why", "cause"}. */
static json_t *open_nvml(struct nvml *n, unsigned *listed)
{
	enum cause cause = CAUSE_DRIVER_MISSING;
	struct error err = {0};
	struct lib_fact fact;
	nvmlReturn_t ret;

	if (lib_open(n, &nvml_lib, NULL, &fact, &err)) {
		lib_fact_release(&fact);
		return json_pack("{s:s, s:s}", "cause", cause_name(CAUSE_LIBRARY_MISSING), "why", err.text);
	}
	lib_fact_release(&fact);
	ret = n->init();
	if (!ret)
		ret = n->count(listed);
	if (ret) {
		nvml_status(ret, &cause);
		return json_pack("{s:s, s:s}", "cause", cause_name(cause), "why", nvml_code_text((int)ret));
	}
	*listed = *listed < 256 ? *listed : 256;
	return NULL;
}

json_t *watch_counters(const char *const *pci, size_t count)
{
	unsigned listed = 0;
	struct nvml n;
	json_t *answer = open_nvml(&n, &listed);

	if (answer)
		return answer;
	answer = json_pack("{s:o}", "gpus", read_all(&n, listed, pci, count));
	n.shutdown();
	return answer;
}

json_t *watch_gpus(void)
{
	unsigned listed = 0;
	struct nvml n;
	json_t *answer = open_nvml(&n, &listed), *list = json_array();

	for (unsigned i = 0; !answer && i < listed; i++) {
		nvmlPciInfo_t info = {0};
		nvmlDevice_t device;
		char address[16];

		if (!n.by_index(i, &device) && !n.pci(device, &info) && nvml_pci_text(address, info.busId))
			json_array_append_new(list, json_string(address));
	}
	if (!answer) {
		n.shutdown();
		return json_pack("{s:o}", "gpus", list);
	}
	json_decref(list);
	return answer;
}
