/* SPDX-License-Identifier: Apache-2.0 */
/* Links and ports whose counters are watched. `assay __facts nvlink|ib MS` reads them repeatedly, in a
 * process that may hang. Counters are cumulative. The counters of each link or port have the time of their
 * reading, t_ns (CLOCK_MONOTONIC). Unsupported values are absent. */
#ifndef MACHINE_WATCH_WATCH_H
#define MACHINE_WATCH_WATCH_H
#include <jansson.h>
#include <stddef.h>

/* The name of a helper process (`assay __facts`) in the process table. `assay health` finds hanging helpers
 * by it. */
#define WATCH_HELPER_NAME "assay-facts"

struct watch_nvlink;

/* Opens NVML, so only a helper process may call it. Close with watch_nvlink_close. NULL: out of memory. */
struct watch_nvlink *watch_nvlink_open(void);
/* {"gpus": [{"pci", "why"?, "links": [a row of the facts' links, with "t_ns", "data_tx_bytes",
 * "data_rx_bytes", "raw_tx_bytes", "raw_rx_bytes", or "rates_why"], "links_why"?: there are no links}]}, or
 * {"why", "cause"} if NVML does not answer at all. The caller decrefs it. */
json_t *watch_nvlink_read(struct watch_nvlink *w);
void watch_nvlink_close(struct watch_nvlink *w);

/* {"ports": [{"device", "port", "kind", "state", "physical", "rate_gbit", "rate_text", "lid", "gid",
 * "gid_index", "interface", "t_ns", "counters": {}, "errors": {}, "unreadable": {file: why}}]} from the
 * folder `sys`: "/sys", or a copy of it. Data is in bytes. {"why"}: the folder exists but cannot be read. The
 * caller decrefs it. */
json_t *watch_ib_read(const char *sys);

/* Reads the counters that must not change during a run once, for the GPUs with these PCI addresses (`assay
 * __facts counters PCI..`): {"gpus": {PCI: {"t_ns", "counters": {name: n}, "states": {name: n}, "signals":
 * {name: n}, "errors": {"link 3": n}}}}. A GPU that does not answer has "why" only. {"why", "cause"}: NVML
 * does not answer at all. Counters only grow; states may change in both directions; signals are those of
 * telemetry. Opens NVML, so only a helper process may call it. The caller decrefs the result. */
json_t *watch_counters(const char *const *pci, size_t count);
/* Lists the PCI addresses of NVML's GPUs (`assay __facts gpus`): {"gpus": [PCI..]}; {"why", "cause"}: NVML
 * does not answer. Fast, and asks for nothing that needs a GPU's firmware. Only a helper process may call it.
 * The caller decrefs the result. */
json_t *watch_gpus(void);
/* Creates a CUDA context on the GPU, writes to its memory and reads it back (`assay __facts alive PCI`). {}:
 * the GPU works. {"why"}: it does not. {"missing"}: the machine has no CUDA. Only a helper process may call
 * it. The caller decrefs the result. */
json_t *watch_alive(const char *pci);
#endif
