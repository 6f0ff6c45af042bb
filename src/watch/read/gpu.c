/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that reads GPUs. It does not touch a GPU that the kernel has suspended. It tries a lost GPU
 * again every 30 s. It writes no line before NVML has answered. The node learns from a shared page at which
 * GPU a call hangs.
 */
#include "watch/read/gpu.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "core/clock.h"

#define RETRIES 6	     /* a lost GPU is tried again every so many slow readings: 30 s */
#define FLUSH_NS 50000000ull /* the lines of GPUs that are read faster than this are sent together */
enum { SHARED_FD = 4 };

static uint64_t retry_after(const struct gpu_reader *r, uint64_t now_ns)
{
	return now_ns + (uint64_t)(1e9 * RETRIES * r->spec->slow);
}

static void mark(struct gpu_reader *r, const char *pci)
{
	for (size_t i = 0; r->at && i < sizeof(r->gpu[0].pci); i++) {
		r->at[i] = pci[i];
		if (!pci[i])
			break;
	}
}

static void declare(struct gpu_reader *r, struct gpu *g, const char *pci, bool granted)
{
	text_copy(g->pci, sizeof(g->pci), pci);
	for (unsigned i = 0; i < NVML_LINKS_MAX; i++)
		g->link[i] = OUT_NONE;
	g->power_status = -1;
	g->granted = granted;
	snprintf(g->number, sizeof(g->number), "%u", (unsigned)(g - r->gpu));
	g->e = out_entity(&r->out, METRIC_SCOPE_GPU, OUT_NONE, "pci_bus_id", g->pci, "gpu", g->number, NULL);
}

/* Without a list of the kernel, NVML's own. */
static void list_by_nvml(struct gpu_reader *r)
{
	unsigned count = 0;

	if (r->nvml.count(&count))
		return;
	for (unsigned i = 0; i < count && r->count < READER_GPUS_MAX; i++) {
		nvmlPciInfo_t info = {0};
		nvmlDevice_t device;
		char pci[16];

		if (r->nvml.by_index(i, &device) || r->nvml.pci(device, &info) ||
		    !nvml_pci_text(pci, info.busId))
			continue;
		declare(r, &r->gpu[r->count++], pci, true);
	}
}

/* Why there is no NVML; NULL: there is. */
static const char *open_nvml(struct gpu_reader *r, struct error *err)
{
	struct lib_fact fact = {0};
	nvmlReturn_t ret;

	if (!r->opened) {
		r->opened = !lib_open(&r->nvml, &nvml_lib, NULL, &fact, err);
		lib_fact_release(&fact);
	}
	if (!r->opened && err->cause == CAUSE_LIBRARY_MISSING && !getenv("ASSAY_LIB_NVML"))
		return "no NVIDIA driver: libnvidia-ml.so.1 was not found";
	if (!r->opened)
		return err->text;
	ret = r->nvml.init();
	r->init = !ret;
	if (ret)
		return nvml_code_text((int)ret);
	if (r->nvml.driver_version && r->nvml.driver_version(r->driver, sizeof(r->driver)))
		*r->driver = '\0';
	return NULL;
}

static bool is_asleep(const struct gpu_reader *r, struct gpu *g)
{
	char status[24];

	return reader_text_open(&g->power_status, status, sizeof(status),
				"%s/bus/pci/devices/%s/power/runtime_status", r->spec->sys, g->pci) &&
	       !strncmp(status, "suspended", 9);
}

static void set_asleep(struct gpu_reader *r, struct gpu *g, bool asleep)
{
	if (g->asleep == asleep)
		return;
	g->asleep = asleep;
	g->until_rare = 0;
	g->gpm.began = false;
	if (asleep)
		gpu_drop_parts(r, g);
	out_label(&r->out, g->e, "power_state", asleep ? "suspended" : NULL);
	out_why(&r->out, g->e, asleep ? "the kernel has suspended the GPU; assay does not wake it" : NULL);
}

static nvmlReturn_t open_gpu(struct gpu_reader *r, struct gpu *g)
{
	char name[96] = "", uuid[96] = "", device[32];
	unsigned minor = 0, index;
	nvmlReturn_t ret = r->nvml.by_pci(g->pci, &g->device);

	if (ret)
		return ret;
	if (r->nvml.index && !r->nvml.index(g->device, &index) && index != strtoul(g->number, NULL, 10)) {
		snprintf(g->number, sizeof(g->number), "%u", index % 10000);
		out_label(&r->out, g->e, "gpu", g->number);
	}
	if (r->nvml.uuid && !r->nvml.uuid(g->device, uuid, sizeof(uuid)))
		out_label(&r->out, g->e, "UUID", uuid);
	if (r->nvml.name && !r->nvml.name(g->device, name, sizeof(name)))
		out_label(&r->out, g->e, "modelName", name);
	if (r->nvml.minor && !r->nvml.minor(g->device, &minor)) {
		snprintf(device, sizeof(device), "nvidia%u", minor);
		out_label(&r->out, g->e, "device", device);
	}
	if (*r->driver)
		out_label(&r->out, g->e, "DCGM_FI_DRIVER_VERSION", r->driver);
	memset(g->never, 0, sizeof(g->never));
	g->until_rare = 0;
	gpu_xids_watch(r, g);
	g->open = g->heard = true;
	return NVML_SUCCESS;
}

static void set_lost(struct gpu_reader *r, struct gpu *g, nvmlReturn_t ret, uint64_t now_ns)
{
	if (!g->lost) {
		out_why(&r->out, g->e, nvml_code_text((int)ret));
		gpu_drop_parts(r, g);
	}
	g->lost = true;
	g->open = false;
	g->gone = NVML_SUCCESS;
	g->retry_ns = retry_after(r, now_ns);
	g->gpm.began = false;
	g->reasons_ns = 0;
}

static void set_found(struct gpu_reader *r, struct gpu *g)
{
	if (g->lost)
		out_why(&r->out, g->e, NULL);
	g->lost = false;
}

/* Reads one GPU with its parts. */
static void read_gpu(struct gpu_reader *r, struct gpu *g, bool slow)
{
	uint64_t now_ns = clock_now_ns(clock_monotonic());
	nvmlReturn_t ret = NVML_SUCCESS;

	if (strstr(r->spec->skip, g->pci)) {
		if (!g->lost)
			out_why(&r->out, g->e, "NVML did not answer for this GPU and is not asked again");
		g->lost = true;
		out_set(&r->out, g->e, CATALOGUE_GPU_UP, 0);
		out_end(&r->out, g->e, now_ns, slow);
		return;
	}
	set_asleep(r, g, is_asleep(r, g));
	if (g->asleep || !r->init) {
		gpu_xids_set(r, g);
		out_end(&r->out, g->e, now_ns, slow);
		return;
	}
	if (g->lost && now_ns < g->retry_ns) {
		if (g->granted || g->heard)
			out_set(&r->out, g->e, CATALOGUE_GPU_UP, 0);
		gpu_xids_set(r, g);
		out_end(&r->out, g->e, now_ns, slow);
		return;
	}
	if (!g->open)
		ret = open_gpu(r, g);
	if (ret == NVML_ERROR_NOT_FOUND && !g->granted) {
		if (!g->lost)
			out_why(&r->out, g->e, "the driver does not grant this GPU here");
		g->lost = true;
		g->retry_ns = retry_after(r, now_ns);
		out_end(&r->out, g->e, now_ns, slow);
		return;
	}
	if (!ret) {
		g->gone = NVML_SUCCESS;
		g->rare = slow && !g->until_rare;
		set_found(r, g);
		gpu_read_values(r, g, slow);
		gpu_read_gpm(r, g);
		if (slow)
			gpu_read_links(r, g);
		gpu_read_instances(r, g, slow);
		gpu_read_processes(r, g);
		if (slow)
			g->until_rare = g->rare ? METRIC_RARE_SLOW - 1 : g->until_rare - 1;
		ret = g->gone;
	}
	if (ret)
		set_lost(r, g, ret, now_ns);
	gpu_xids_set(r, g);
	if (g->xids)
		out_set(&r->out, g->e, CATALOGUE_GPU_XID_LAST, g->xid_last);
	if (!g->lost)
		out_set(&r->out, g->e, CATALOGUE_GPU_INFO, 1);
	out_set(&r->out, g->e, CATALOGUE_GPU_UP, !g->lost);
	if (g->rare && !g->lost)
		out_end_rare(&r->out, g->e, now_ns);
	else
		out_end(&r->out, g->e, now_ns, slow);
}

/* One round. False: the reader of the output is gone. */
static bool read_all(struct gpu_reader *r, bool slow)
{
	uint64_t flushed_ns = clock_now_ns(clock_monotonic());

	mark(r, "nvml");
	gpu_xids_read(r);
	for (unsigned i = 0; i < r->count; i++) {
		mark(r, r->gpu[i].pci);
		read_gpu(r, &r->gpu[i], slow);
		if ((!r->rounds || clock_now_ns(clock_monotonic()) - flushed_ns >= FLUSH_NS) &&
		    !out_flush(&r->out))
			return false;
		flushed_ns = r->out.text.size ? flushed_ns : clock_now_ns(clock_monotonic());
	}
	r->rounds++;
	mark(r, "");
	if (slow) {
		reader_cpu(&r->out, r->self);
		out_end(&r->out, r->self, clock_now_ns(clock_monotonic()), true);
	}
	out_done(&r->out, clock_now_ns(clock_monotonic()));
	return out_flush(&r->out);
}

/* NVML is tried again as long as there is none: a driver may be loaded later. */
static void find_nvml(struct gpu_reader *r)
{
	struct error err = {0};
	const char *why;

	mark(r, "nvml");
	why = open_nvml(r, &err);
	if (r->init && !r->count)
		list_by_nvml(r);
	for (unsigned i = 0; i < r->count; i++)
		if (r->init || !r->gpu[i].lost) {
			out_why(&r->out, r->gpu[i].e, why);
			r->gpu[i].lost = why != NULL;
		}
	if (why) {
		text_add(&r->out.text, "{\"s\":0,\"why\":");
		out_add_string(&r->out.text, why);
		text_add(&r->out.text, "}\n");
	} else {
		text_add(&r->out.text, "{\"s\":0,\"why\":null}\n");
	}
}

int reader_gpu(const struct reader_spec *spec)
{
	struct gpu_reader *r = calloc(1, sizeof(*r));
	struct reader_rounds rounds = {0};
	struct reader_pci pci;
	uint64_t retry_ns = 0;
	void *page;

	if (!r)
		return 1;
	prctl(PR_SET_NAME, READER_GPU_NAME);
	r->spec = spec;
	gpu_limits_init(r->limits);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	r->at = page == MAP_FAILED ? NULL : page;
	out_init(&r->out, STDOUT_FILENO);
	r->self = reader_declare(&r->out, "gpu");
	reader_pci_list(&pci, spec->sys, spec->proc);
	for (unsigned i = 0; i < pci.count; i++)
		declare(r, &r->gpu[r->count++], pci.address[i], pci.granted);
	find_nvml(r);
	gpu_xids_open(r);
	while (reader_wait(&rounds, spec)) {
		uint64_t now_ns = clock_now_ns(clock_monotonic());

		if (!r->init && retry_ns && now_ns >= retry_ns)
			find_nvml(r);
		if (!r->init && now_ns >= retry_ns)
			retry_ns = retry_after(r, now_ns);
		if (!read_all(r, rounds.slow))
			break;
	}
	for (unsigned i = 0; i < r->count; i++)
		gpu_close_gpm(&r->nvml, &r->gpu[i].gpm);
	gpu_xids_close(r);
	if (r->init)
		r->nvml.shutdown();
	out_release(&r->out);
	free(r);
	return 0;
}
