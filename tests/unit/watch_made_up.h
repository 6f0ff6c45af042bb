/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of a made-up machine that has every scope and every row of the catalogue: for pages and for Prometheus. */
#ifndef TESTS_UNIT_WATCH_MADE_UP_H
#define TESTS_UNIT_WATCH_MADE_UP_H
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"
#include "watch/state.h"

enum { MACHINE_LINKS = 18, MACHINE_PROCESSES = 2, MACHINE_ENTITIES_MOST = 4096 };
#define MACHINE_T0 1000000000000ull /* ns */

struct machine_stream {
	unsigned gpus, count;
	enum metric_scope scope[MACHINE_ENTITIES_MOST];
	unsigned number[MACHINE_ENTITIES_MOST]; /* of its scope */
};

static inline unsigned machine_source(enum metric_scope scope)
{
	switch (scope) {
	case METRIC_SCOPE_GPU:
	case METRIC_SCOPE_GPU_INSTANCE:
	case METRIC_SCOPE_XID:
	case METRIC_SCOPE_NVLINK:
	case METRIC_SCOPE_PROCESS:
		return 0;
	case METRIC_SCOPE_PORT:
	case METRIC_SCOPE_PORT_ERROR:
		return 2;
	case METRIC_SCOPE_RUN:
	case METRIC_SCOPE_CHECK:
		return 3;
	default:
		return 1;
	}
}

/* Entities of a scope for each GPU, or for the node. */
static inline unsigned machine_number(enum metric_scope scope, unsigned gpus)
{
	switch (scope) {
	case METRIC_SCOPE_GPU:
	case METRIC_SCOPE_PORT:
		return gpus;
	case METRIC_SCOPE_NVLINK:
		return gpus * MACHINE_LINKS;
	case METRIC_SCOPE_PROCESS:
		return gpus * MACHINE_PROCESSES;
	case METRIC_SCOPE_PORT_ERROR:
	case METRIC_SCOPE_INTERFACE:
	case METRIC_SCOPE_DISK:
	case METRIC_SCOPE_RUN:
	case METRIC_SCOPE_GPU_INSTANCE:
		return 2;
	case METRIC_SCOPE_SOURCE:
	case METRIC_SCOPE_EXPORTER:
		return 0;
	default:
		return 1;
	}
}

static inline unsigned machine_gpu(const struct machine_stream *m, enum metric_scope scope, unsigned number)
{
	return scope == METRIC_SCOPE_NVLINK    ? number / MACHINE_LINKS
	       : scope == METRIC_SCOPE_PROCESS ? number / MACHINE_PROCESSES
					       : number % m->gpus;
}

static inline void machine_label_value(const struct machine_stream *m, enum metric_scope scope, unsigned number, const char *label,
				       char out[96])
{
	unsigned gpu = machine_gpu(m, scope, number);

	if (!strcmp(label, "gpu"))
		snprintf(out, 96, "%u", gpu);
	else if (!strcmp(label, "UUID"))
		snprintf(out, 96, "GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8%02x", gpu);
	else if (!strcmp(label, "pci_bus_id"))
		snprintf(out, 96, "0000:%02x:00.0", 27 + gpu);
	else if (!strcmp(label, "device"))
		snprintf(out, 96, scope == METRIC_SCOPE_GPU ? "nvidia%u" : "mlx5_%u", gpu);
	else if (!strcmp(label, "modelName"))
		snprintf(out, 96, "NVIDIA H100 80GB HBM3");
	else if (!strcmp(label, "DCGM_FI_DRIVER_VERSION"))
		snprintf(out, 96, "570.86.15");
	else if (!strcmp(label, "nvlink"))
		snprintf(out, 96, "%u", number % MACHINE_LINKS);
	else if (!strcmp(label, "pid"))
		snprintf(out, 96, "%u", 4000 + number);
	else if (!strcmp(label, "xid"))
		snprintf(out, 96, "63");
	else if (!strcmp(label, "since"))
		snprintf(out, 96, "boot");
	else if (!strcmp(label, "port"))
		snprintf(out, 96, "1");
	else if (!strcmp(label, "kind"))
		snprintf(out, 96, scope == METRIC_SCOPE_RUN ? (number ? "serve" : "train") : "infiniband");
	else if (!strcmp(label, "suite"))
		snprintf(out, 96, "quick");
	else if (!strcmp(label, "container") || !strcmp(label, "namespace") || !strcmp(label, "pod") || !strcmp(label, "hpc_job") ||
		 !strcmp(label, "power_state"))
		*out = '\0';
	else
		snprintf(out, 96, "%s%u", label, number);
}

static inline void machine_words(struct text *out, const struct machine_stream *m, unsigned id, const char *words, bool *first)
{
	while (*words) {
		size_t n = strcspn(words, " ");
		char name[64], value[96];

		snprintf(name, sizeof(name), "%.*s", (int)n, words);
		machine_label_value(m, m->scope[id], m->number[id], name, value);
		if (*value)
			text_addf(out, "%s\"%s\":\"%s\"", *first ? "" : ",", name, value);
		*first = *first && !*value;
		words += n + (words[n] == ' ');
	}
}

/* One line for each entity, each with a newline. */
static inline void machine_begin(struct machine_stream *m, struct text *out, unsigned gpus)
{
	*m = (struct machine_stream){.gpus = gpus};
	text_addf(out, "{\"watch\":1,\"node\":\"gpu7\",\"boot\":\"boot-1\",\"t\":%llu,\"wall\":1764355200,\"interval\":1,"
		       "\"sources\":[\"gpu\",\"host\",\"ports\",\"runs\"],\"metrics\":[",
		  MACHINE_T0);
	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		struct text full = {0};

		catalogue_add_full(&full, (enum catalogue)c);
		text_addf(out, "%s\"", c ? "," : "");
		for (const char *p = text_str(&full); *p; p++)
			text_addf(out, *p == '"' ? "\\%c" : "%c", *p);
		text_add(out, "\"");
		text_release(&full);
	}
	text_add(out, "]}\n");
	for (int scope = 0; scope < METRIC_SCOPE_COUNT; scope++)
		for (unsigned i = 0; i < machine_number((enum metric_scope)scope, gpus); i++) {
			unsigned id = m->count++;
			bool first = true;

			m->scope[id] = (enum metric_scope)scope;
			m->number[id] = i;
			text_addf(out, "{\"e\":%u,\"s\":%u,\"scope\":\"%s\",\"labels\":{", id, machine_source(m->scope[id]),
				  metric_scope_row(m->scope[id])->name);
			machine_words(out, m, id, metric_scope_row(m->scope[id])->identity, &first);
			machine_words(out, m, id, metric_scope_row(m->scope[id])->attributes, &first);
			text_add(out, "}}\n");
		}
}

static inline double machine_value(enum catalogue row, double seconds, unsigned number)
{
	const struct catalogue_row *r = catalogue_row(row);

	if (r->type == METRIC_COUNTER)
		return !strcmp(r->unit, "seconds") ? 100 + 0.01 * seconds
		       : !strcmp(r->unit, "errors") ? 3
		       : !strcmp(r->unit, "joules") ? 300 * seconds + number
						    : 1e6 * seconds + number;
	if (!strcmp(r->unit, "bool"))
		return strstr(r->symbol, "_UP") || strstr(r->symbol, "HELD_POWER") || strstr(r->symbol, "CHECK_PASS") || row == CATALOGUE_GPU_INFO;
	if (!strcmp(r->unit, "ratio"))
		return 0.5 + 0.01 * (number % 8);
	if (row == CATALOGUE_RUN_STEP)
		return seconds;
	return 100 + number % 8;
}

/* One reading of all sources at `seconds`, each line with a newline. */
static inline void machine_reading(const struct machine_stream *m, struct text *out, double seconds)
{
	unsigned long long t = MACHINE_T0 + (unsigned long long)(seconds * 1e9) + 1;

	for (unsigned slow = 0; slow < 2; slow++)
		for (unsigned source = 0; source < 4; source++) {
			bool any = false;

			text_addf(out, "{\"t\":%llu,\"s\":%u,\"v\":{", t, source);
			for (unsigned id = 0; id < m->count; id++) {
				enum catalogue row = catalogue_first(m->scope[id]);
				enum catalogue end = row + catalogue_scope_rows(m->scope[id]);
				bool begun = false;

				if (machine_source(m->scope[id]) != source)
					continue;
				for (; row < end; row++)
					if ((catalogue_row(row)->pace != METRIC_FAST) == slow) {
						if (!begun)
							text_addf(out, "%s\"%u\":[", any ? "," : "", id);
						text_addf(out, "%s%d,%.15g", begun ? "," : "", (int)row,
							  machine_value(row, seconds, m->number[id]));
						any = begun = true;
					}
				if (begun)
					text_add(out, "]");
			}
			text_addf(out, "},\"end\":true%s}\n", slow ? ",\"slow\":true" : "");
		}
}
#endif
