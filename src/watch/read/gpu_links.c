/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVLinks of one GPU: state, payload and errors, with one call for the fields of all links. The reader in
 * machine/watch is not used here, because it opens all GPUs, also suspended ones.
 */
#include <string.h>
#include "watch/read/gpu.h"

static const unsigned per_link[] = {NVML_LINK_FIELD_data_tx, NVML_LINK_FIELD_data_rx,
				    NVML_LINK_FIELD_error_crc, NVML_LINK_FIELD_error_replay,
				    NVML_LINK_FIELD_error_recovery};
enum { FIELDS_MAX = sizeof(per_link) / sizeof(per_link[0]), TX = 0, RX = 1, ERRORS = 2 };
static const enum catalogue error_row[] = {CATALOGUE_GPU_NVLINK_CRC, CATALOGUE_GPU_NVLINK_REPLAY,
					   CATALOGUE_GPU_NVLINK_RECOVERY};

/* Counts the links that this GPU has; a GPU of a kind that can have 18 may have none. */
static void find_links(struct gpu_reader *r, struct gpu *g)
{
	nvmlEnableState_t up;
	char number[8];

	g->links_asked = true;
	while (r->nvml.nvlink_state && g->links < NVML_LINKS_MAX) {
		nvmlReturn_t ret = r->nvml.nvlink_state(g->device, g->links, &up);

		if (ret == NVML_ERROR_GPU_IS_LOST)
			g->gone = ret;
		if (ret)
			break;
		snprintf(number, sizeof(number), "%u", g->links);
		g->link[g->links++] = out_entity(&r->out, METRIC_SCOPE_NVLINK, g->e, "pci_bus_id", g->pci,
						 "nvlink", number, "gpu", g->number, NULL);
	}
	for (size_t i = 0; !g->links && i < sizeof(error_row) / sizeof(error_row[0]); i++)
		out_absent(&r->out, g->e, error_row[i], "the GPU has no NVLinks");
}

static void take_bytes(struct gpu_reader *r, uint32_t e, enum catalogue row, const nvmlFieldValue_t *value)
{
	double kib;

	if (nvml_field_f64(value, &kib))
		gpu_set(r, e, row, 1024 * kib);
	else
		out_absent(&r->out, e, row,
			   nvml_code_text(value->nvmlReturn ? (int)value->nvmlReturn : NVML_ERROR_UNKNOWN));
}

/* The sum over the links that have the counter. Without one of them it would be wrong, so an impossible
 * answer leaves no sum. */
static void take_errors(struct gpu_reader *r, struct gpu *g, const nvmlFieldValue_t *value)
{
	for (unsigned k = 0; k < FIELDS_MAX - ERRORS; k++) {
		double sum = 0, one;
		bool any = false, possible = true;

		for (unsigned i = 0; i < g->links; i++) {
			if (!nvml_field_f64(&value[i * FIELDS_MAX + ERRORS + k], &one))
				continue;
			possible = possible && gpu_value_is_possible(r, error_row[k], one);
			sum += one;
			any = true;
		}
		if (!possible)
			out_absent(&r->out, g->e, error_row[k], gpu_impossible(r, error_row[k]));
		else if (any)
			out_set(&r->out, g->e, error_row[k], sum);
		else
			out_absent(&r->out, g->e, error_row[k],
				   nvml_code_text((int)value[ERRORS + k].nvmlReturn));
	}
}

void gpu_read_links(struct gpu_reader *r, struct gpu *g)
{
	nvmlFieldValue_t value[NVML_LINKS_MAX * FIELDS_MAX];
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	const unsigned fields = g->rare ? FIELDS_MAX : ERRORS; /* for each link */

	if (g->gone)
		return;
	if (!g->links_asked)
		find_links(r, g);
	if (!g->links || g->gone)
		return;
	memset(value, 0, sizeof(value));
	for (unsigned i = 0; i < g->links * fields; i++) {
		value[i].fieldId = per_link[i % fields];
		value[i].scopeId = i / fields;
	}
	if (r->nvml.fields)
		ret = r->nvml.fields(g->device, (int)(g->links * fields), value);
	for (unsigned i = 0; ret && i < g->links * fields; i++)
		value[i].nvmlReturn = ret;
	if (ret == NVML_ERROR_GPU_IS_LOST) {
		g->gone = ret;
		return;
	}
	for (unsigned i = 0; i < g->links; i++) {
		nvmlEnableState_t up = NVML_FEATURE_DISABLED;

		ret = r->nvml.nvlink_state(g->device, i, &up);
		if (ret)
			out_absent(&r->out, g->link[i], CATALOGUE_NVLINK_UP, nvml_code_text((int)ret));
		else
			gpu_set(r, g->link[i], CATALOGUE_NVLINK_UP, (double)up);
		take_bytes(r, g->link[i], CATALOGUE_NVLINK_TX, &value[i * fields + TX]);
		take_bytes(r, g->link[i], CATALOGUE_NVLINK_RX, &value[i * fields + RX]);
	}
	if (fields > ERRORS)
		take_errors(r, g, value);
}
