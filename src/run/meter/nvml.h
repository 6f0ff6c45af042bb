/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's clock, power and power limit for the GPU meter. NVML is opened at the first reading. If that fails,
 * the values are absent. */
#ifndef RUN_METER_NVML_H
#define RUN_METER_NVML_H
#include "run/meter/meter.h"
#include "team/links/wait_board.h"
#include "vendor/nvml.h"

struct meter_nvml { /* zeroed: not opened yet */
	struct nvml nvml;
	nvmlDevice_t device;
	struct team_board *board; /* shows the current NVML call; NULL: no board */
	char pci[16];
	bool tried, opened;
	double limit_w;
};

/* Makes one NVML call through this meter, for example METER_NVML(n, INIT, init()). The board names the call
 * until it returns. */
#define METER_NVML(n, name, call)                                                                            \
	(team_call((n)->board, TEAM_CALL_##name), meter_nvml_back((n), (n)->nvml.call))
/* Clears the board after a call. Returns `ret`. */
nvmlReturn_t meter_nvml_back(const struct meter_nvml *n, nvmlReturn_t ret);

void meter_nvml_name(struct meter_nvml *n, const char *pci, struct team_board *board);
void meter_nvml_read(struct meter_nvml *n, struct meter_state *out);
/* Prepares for a reading inside a window, because opening takes longer than the reading. False: NVML cannot
 * be used. */
bool meter_nvml_open(struct meter_nvml *n);
/* Current generation and lanes of the PCIe link; false: they cannot be read. */
bool meter_nvml_link(struct meter_nvml *n, unsigned *gen, unsigned *width);
void meter_nvml_close(struct meter_nvml *n);
#endif
