/* SPDX-License-Identifier: Apache-2.0 */
#include "run/meter/nvml.h"
#include "core/text/text.h"

void meter_nvml_name(struct meter_nvml *n, const char *pci, struct team_board *board)
{
	text_copy(n->pci, sizeof(n->pci), pci);
	n->board = board;
}

nvmlReturn_t meter_nvml_back(const struct meter_nvml *n, nvmlReturn_t ret)
{
	team_call(n->board, TEAM_CALL_NONE);
	return ret;
}

bool meter_nvml_open(struct meter_nvml *n)
{
	struct lib_fact fact = {0};
	unsigned limit_mw = 0;

	if (n->tried || !n->pci[0])
		return n->opened;
	n->tried = true;
	if (!lib_open(&n->nvml, &nvml_lib, NULL, &fact, NULL) && !METER_NVML(n, INIT, init())) {
		n->opened = !METER_NVML(n, HANDLE, by_pci(n->pci, &n->device));
		if (!n->opened)
			n->nvml.shutdown();
	}
	lib_fact_release(&fact);
	if (n->opened && n->nvml.power_limit &&
	    !METER_NVML(n, POWER_LIMIT, power_limit(n->device, &limit_mw)))
		n->limit_w = limit_mw / 1e3;
	return n->opened;
}

/* The instantaneous power, if the driver has the field; the plain call is an average over a second. */
static bool read_power(struct meter_nvml *n, double *w)
{
	nvmlFieldValue_t field = {.fieldId = NVML_FIELD_power_instant};
	unsigned mw;

	if (n->nvml.fields && !METER_NVML(n, FIELDS, fields(n->device, 1, &field)) && !field.nvmlReturn) {
		*w = field.value.uiVal / 1e3;
		return true;
	}
	if (!n->nvml.power || METER_NVML(n, POWER, power(n->device, &mw)))
		return false;
	*w = mw / 1e3;
	return true;
}

void meter_nvml_read(struct meter_nvml *n, struct meter_state *out)
{
	unsigned mhz = 0;
	unsigned long long reasons = 0;

	*out = (struct meter_state){0};
	if (!meter_nvml_open(n))
		return;
	out->has_clock = n->nvml.clock && !METER_NVML(n, CLOCK, clock(n->device, 1 /* SM */, &mhz));
	out->clock_hz = mhz * 1e6;
	out->has_power = read_power(n, &out->power_w);
	out->has_capped = out->has_power && n->limit_w > 0 && n->nvml.reasons &&
			  !METER_NVML(n, REASONS, reasons(n->device, &reasons));
	out->capped = out->has_capped && (reasons & NVML_REASON_SW_POWER_CAP);
	out->limit_w = n->limit_w;
}

bool meter_nvml_link(struct meter_nvml *n, unsigned *gen, unsigned *width)
{
	return meter_nvml_open(n) && n->nvml.pcie_gen && n->nvml.pcie_width &&
	       !METER_NVML(n, PCIE_GEN, pcie_gen(n->device, gen)) &&
	       !METER_NVML(n, PCIE_WIDTH, pcie_width(n->device, width));
}

void meter_nvml_close(struct meter_nvml *n)
{
	if (n->opened)
		n->nvml.shutdown();
	n->opened = false;
}
