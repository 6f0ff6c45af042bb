/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers and GPUs that do not answer. Each question is asked by a helper with a time limit. */
#ifndef CMD_HEALTH_SILENT_H
#define CMD_HEALTH_SILENT_H
#include <signal.h>
#include "cmd/health/finding.h"
#include "machine/machine.h"

enum { SILENT_GPUS = 256 };

struct silent_gpus {
	char pci[SILENT_GPUS][HEALTH_PART]; /* as NVML lists them */
	size_t count;
};

/* Asks NVML for its list of GPUs. False: NVML hangs, and the finding is `unknown`. A missing library or
 * driver is no finding here: the readings tell it. */
bool silent_ask_driver(struct silent_gpus *g, const volatile sig_atomic_t *stop, struct health_finding *f);
/* Call it after the facts. If NVML listed GPUs, but gave no facts in time, one helper per GPU asks again, all
 * at once. The finding becomes `unknown` and names a GPU that hangs. False: NVML gave facts. */
bool silent_name_hanging(const struct silent_gpus *g, const struct machine *m,
			 const volatile sig_atomic_t *stop, struct health_finding *f);
/* Asks CUDA about each GPU that NVML reports as lost. Both fail: a hardware failure. Else `unknown`. */
void silent_ask_cuda(const struct machine *m, const volatile sig_atomic_t *stop, struct health_finding *f);
#endif
