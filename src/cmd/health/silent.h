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

/* Asks NVML for its list of GPUs. False: it hangs, and the finding says so. A missing library or driver is no
 * finding here: the readings tell it. */
bool silent_ask_driver(struct silent_gpus *g, const volatile sig_atomic_t *stop, struct health_finding *f);
/* If NVML listed GPUs, but its facts did not come in time, asks each GPU by a helper of its own, all at once,
 * and adds an `unknown` that names the GPUs that hang. False: the facts came. */
bool silent_name_hanging(const struct silent_gpus *g, const struct machine *m,
			 const volatile sig_atomic_t *stop, struct health_finding *f);
/* Asks CUDA about each GPU that NVML reports as lost. Both fail: a hardware failure. Else `unknown`. */
void silent_ask_cuda(const struct machine *m, const volatile sig_atomic_t *stop, struct health_finding *f);
#endif
