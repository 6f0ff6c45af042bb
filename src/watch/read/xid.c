/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Xid errors. The kernel log tells them also for a GPU that NVML has lost, and those since the boot if its
 * first record is still there. Without the log, NVML's events count from the start of the reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "watch/read/gpu.h"

enum { EVENTS_A_ROUND = 32, RECORDS_A_ROUND = 4096, RECORD_MAX = 8192, XID_MAX = 9999 };

static void count(struct gpu_reader *r, struct gpu *g, unsigned number, bool counted)
{
	char text[16];
	unsigned i = 0;

	if (!counted)
		return;
	while (i < g->xids && g->xid[i].number != number)
		i++;
	if (i == GPU_XIDS_MAX)
		return;
	if (i == g->xids) {
		snprintf(text, sizeof(text), "%u", number);
		g->xid[i] = (struct gpu_xid){.number = number};
		g->xid[i].e = out_entity(&r->out, METRIC_SCOPE_XID, g->e, "pci_bus_id", g->pci, "xid", text,
					 "gpu", g->number, "since", r->xids.since, NULL);
		g->xids++;
	}
	g->xid[i].count++;
	g->xid_last = number;
}

/* "6,0,12345,-;NVRM: Xid (PCI:0000:1b:00): 79, .." */
static void take_record(struct gpu_reader *r, const char *line)
{
	unsigned level, domain, bus, device, number;
	unsigned long long sequence;
	char address[16];
	const char *text = strstr(line, "NVRM: Xid (PCI:"), *after;

	if (!r->xids.begun && sscanf(line, "%u,%llu,", &level, &sequence) == 2) {
		r->xids.begun = true;
		if (!sequence && r->xids.old) {
			r->xids.old = false;
			r->xids.since = "boot";
		}
	}
	if (!text || sscanf(text, "NVRM: Xid (PCI:%x:%x:%x", &domain, &bus, &device) != 3)
		return;
	after = strstr(text, "):");
	if (!after || sscanf(after + 2, "%u", &number) != 1 || number > XID_MAX)
		return;
	snprintf(address, sizeof(address), "%04x:%02x:%02x.0", domain & 0xffff, bus & 0xff, device & 0xff);
	for (unsigned i = 0; i < r->count; i++)
		if (!strcmp(r->gpu[i].pci, address))
			count(r, &r->gpu[i], number, !r->xids.old);
}

static void take_records(struct gpu_reader *r)
{
	char *line = r->xids.line.data, *end;

	while (line && (end = strchr(line, '\n'))) {
		*end = '\0';
		take_record(r, line);
		line = end + 1;
	}
	if (line && line != r->xids.line.data) {
		r->xids.line.size = strlen(line);
		memmove(r->xids.line.data, line, r->xids.line.size + 1);
	}
	if (r->xids.line.size > RECORD_MAX)
		text_release(&r->xids.line);
}

/* Each read of the kernel log gives one record. EPIPE: records were overwritten before they were read. */
static void read_log(struct gpu_reader *r)
{
	char record[RECORD_MAX];

	for (int i = 0; i < RECORDS_A_ROUND; i++) {
		ssize_t n = read(r->xids.log, record, sizeof(record));

		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n <= 0)
			return;
		text_add_bytes(&r->xids.line, record, (size_t)n);
		take_records(r);
	}
}

void gpu_xids_open(struct gpu_reader *r)
{
	r->xids.since = "reader";
	r->xids.log = open(r->spec->kmsg, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->xids.log >= 0) {
		r->xids.old = true; /* unless the first record is the boot's */
		read_log(r);
		r->xids.old = false;
	}
	if (!r->init)
		return;
	if (r->nvml.event_set_create && r->nvml.event_set_free && r->nvml.event_set_wait &&
	    r->nvml.event_register && r->nvml.event_set_create(&r->xids.set))
		r->xids.set = NULL;
}

void gpu_xids_watch(struct gpu_reader *r, struct gpu *g)
{
	unsigned long long types = nvmlEventTypeXidCriticalError;
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;

	if (g->watched)
		return;
	if (r->xids.set && r->nvml.event_types && !r->nvml.event_types(g->device, &types))
		types &= nvmlEventTypeXidCriticalError;
	if (r->xids.set)
		ret = types ? r->nvml.event_register(g->device, types, r->xids.set)
			    : NVML_ERROR_NOT_SUPPORTED;
	g->watched = !ret;
	if (ret && r->xids.log < 0)
		out_absent(&r->out, g->e, CATALOGUE_GPU_XID_LAST,
			   "neither NVML nor the kernel log reports Xid errors here");
}

void gpu_xids_read(struct gpu_reader *r)
{
	if (r->xids.log >= 0)
		read_log(r);
	for (int i = 0; r->xids.set && i < EVENTS_A_ROUND; i++) {
		nvmlEventData_t data = {0};

		if (r->nvml.event_set_wait(r->xids.set, &data, 0))
			return; /* the usual case: none */
		for (unsigned k = 0; k < r->count; k++)
			if (r->gpu[k].open && r->gpu[k].device == data.device &&
			    data.eventType & nvmlEventTypeXidCriticalError && r->xids.log < 0 &&
			    data.eventData <= XID_MAX)
				count(r, &r->gpu[k], (unsigned)data.eventData, true);
	}
}

void gpu_xids_set(struct gpu_reader *r, struct gpu *g)
{
	for (unsigned i = 0; i < g->xids; i++)
		out_set(&r->out, g->xid[i].e, CATALOGUE_XID_COUNT, g->xid[i].count);
}

void gpu_xids_close(struct gpu_reader *r)
{
	if (r->xids.set)
		r->nvml.event_set_free(r->xids.set);
	if (r->xids.log >= 0)
		close(r->xids.log);
	text_release(&r->xids.line);
}
