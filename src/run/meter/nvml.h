/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's clock, power and power cap for the GPU's meter; opened at the first reading, and absent where it
 * can't be. */
#ifndef RUN_METER_NVML_H
#define RUN_METER_NVML_H
#include "run/meter/meter.h"
#include "team/links/wait_board.h"
#include "vendor/nvml.h"

struct meter_nvml { /* zeroed: not opened yet */
	struct nvml nvml;
	nvmlDevice_t device;
	struct team_board *board; /* the call that is made stands there; NULL: nobody looks */
	char pci[16];
	bool tried, opened;
	double limit_w;
};

/* One call of NVML through this meter, for example METER_NVML(n, INIT, init()). The board names it until it
 * returns. */
#define METER_NVML(n, name, call)                                                                            \
	(team_call((n)->board, TEAM_CALL_##name), meter_nvml_back((n), (n)->nvml.call))
/* `ret`, of a call that has returned. */
nvmlReturn_t meter_nvml_back(const struct meter_nvml *n, nvmlReturn_t ret);

void meter_nvml_name(struct meter_nvml *n, const char *pci, struct team_board *board);
void meter_nvml_read(struct meter_nvml *n, struct meter_state *out);
/* Ready for a reading inside a window: opening takes longer than the reading. False: it cannot be. */
bool meter_nvml_open(struct meter_nvml *n);
/* Generation and lanes of the PCIe link now; false where they can't be read. */
bool meter_nvml_link(struct meter_nvml *n, unsigned *gen, unsigned *width);
void meter_nvml_close(struct meter_nvml *n);
#endif
