/* SPDX-License-Identifier: Apache-2.0 */
/* NVLinks of all GPUs, read with an NVML that stays open. */
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "machine/facts/facts.h"
#include "machine/raw/nvml.h"
#include "machine/watch/watch.h"

enum { GPUS_MAX = 256 };

struct watch_nvlink {
	struct nvml nvml;
	bool opened, init;
	json_t *why; /* the answer if there is no NVML; else NULL */
	unsigned count;
	struct watched {
		nvmlDevice_t device;
		nvmlReturn_t ret;
		char pci[16];
		json_t *links; /* raw rows with type and peer of each link, read once */
	} gpu[GPUS_MAX];
};

static json_t *no_answer(enum cause cause, const char *why)
{
	return json_pack("{s:s,s:s}", "cause", cause_name(cause), "why", why);
}

static void open_gpu(struct watch_nvlink *w, unsigned index)
{
	struct watched *g = &w->gpu[index];
	nvmlPciInfo_t pci = {0};

	g->links = json_array();
	g->ret = w->nvml.by_index(index, &g->device);
	if (!g->ret)
		g->ret = w->nvml.pci(g->device, &pci);
	if (!g->ret && !nvml_pci_text(g->pci, pci.busId))
		g->ret = NVML_ERROR_UNKNOWN;
	if (!g->ret)
		raw_nvml_links(&w->nvml, g->device, g->links);
}

struct watch_nvlink *watch_nvlink_open(void)
{
	struct watch_nvlink *w = calloc(1, sizeof(*w));
	enum cause cause = CAUSE_NONE;
	struct error err = {0};
	struct lib_fact fact;
	nvmlReturn_t ret;

	if (!w)
		return NULL;
	w->opened = !lib_open(&w->nvml, &nvml_lib, NULL, &fact, &err);
	lib_fact_release(&fact);
	if (!w->opened) {
		w->why = no_answer(CAUSE_DRIVER_MISSING, err.text);
		return w;
	}
	ret = w->nvml.init();
	w->init = !ret;
	if (!ret)
		ret = w->nvml.count(&w->count);
	if (ret) {
		nvml_status(ret, &cause);
		w->why = no_answer(cause, nvml_code_text((int)ret));
		w->count = 0;
	}
	w->count = w->count < GPUS_MAX ? w->count : GPUS_MAX;
	for (unsigned i = 0; i < w->count; i++)
		open_gpu(w, i);
	return w;
}

void watch_nvlink_close(struct watch_nvlink *w)
{
	for (unsigned i = 0; w && i < w->count; i++)
		json_decref(w->gpu[i].links);
	if (w && w->init)
		w->nvml.shutdown();
	if (w)
		json_decref(w->why);
	free(w);
}

/* Adds the four data counters in bytes, or the reason why there are none. */
static void add_data(json_t *row, const json_t *fields)
{
	static const struct {
		const char *field, *name;
	} counters[] = {{"data_tx", "data_tx_bytes"},
			{"data_rx", "data_rx_bytes"},
			{"raw_tx", "raw_tx_bytes"},
			{"raw_rx", "raw_rx_bytes"}};
	json_int_t code = 0;
	bool any = false;

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		const json_t *answer = json_object_get(fields, counters[i].field);
		const json_t *kib = json_array_get(answer, 1);

		if (json_is_integer(kib)) {
			json_object_set_new(row, counters[i].name,
					    json_integer(json_integer_value(kib) << 10));
			any = true;
		} else if (!code) {
			code = json_integer_value(json_array_get(answer, 0));
		}
	}
	if (!any)
		facts_set_text(row, "rates_why", code ? nvml_code_text((int)code) : "not read");
}

/* The current state of one link. NULL with *ret set if NVML has no answer about it. Type and peer come from
 * the first reading. */
static json_t *read_link(struct watch_nvlink *w, struct watched *g, size_t index, nvmlReturn_t *ret)
{
	const struct clock *clock = clock_monotonic();
	json_t *raw = json_copy(json_array_get(g->links, index)), *fields = json_object();
	json_t *row = json_pack("{s:I}", "link", (json_int_t)index);
	nvmlEnableState_t up = NVML_FEATURE_DISABLED;
	uint64_t before;

	*ret = w->nvml.nvlink_state(g->device, (unsigned)index, &up);
	before = clock_now_ns(clock);
	raw_put(raw, "nvlink_state", *ret, raw_integer(up));
	if (*ret == NVML_ERROR_GPU_IS_LOST)
		g->ret = *ret;
	if (w->nvml.fields)
		raw_nvml_link_fields(&w->nvml, g->device, (unsigned)index, fields);
	json_object_set_new(row, "t_ns",
			    json_integer((json_int_t)(before + (clock_now_ns(clock) - before) / 2)));
	json_object_set_new(raw, "fields", fields);
	if (facts_nvlink(row, raw)) {
		add_data(row, fields);
	} else {
		json_decref(row);
		row = NULL;
	}
	json_decref(raw);
	return row;
}

static json_t *read_gpu(struct watch_nvlink *w, struct watched *g)
{
	json_t *links = json_array(), *gpu;
	nvmlReturn_t ret = NVML_ERROR_NOT_SUPPORTED;

	for (size_t i = 0; !g->ret && i < json_array_size(g->links); i++) {
		json_t *link = read_link(w, g, i, &ret);

		if (link)
			json_array_append_new(links, link);
	}
	gpu = json_pack("{s:s,s:o}", "pci", g->pci, "links", links);
	if (g->ret)
		facts_set_text(gpu, "why", nvml_code_text((int)g->ret));
	else if (!json_array_size(links))
		facts_set_text(gpu, "links_why", nvml_code_text((int)ret));
	return gpu;
}

json_t *watch_nvlink_read(struct watch_nvlink *w)
{
	json_t *answer, *gpus;

	if (w->why)
		return json_incref(w->why);
	answer = json_pack("{s:[]}", "gpus");
	gpus = json_object_get(answer, "gpus");
	for (unsigned i = 0; i < w->count; i++)
		json_array_append_new(gpus, read_gpu(w, &w->gpu[i]));
	return answer;
}
