/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links and ports whose counters somebody watches: read again and again by `assay __facts nvlink|ib MS`, in a
 * process that may hang. Counters are cumulative; each link's and port's were read at its t_ns
 * (CLOCK_MONOTONIC). What is not supported is not there.
 */
#ifndef MACHINE_WATCH_WATCH_H
#define MACHINE_WATCH_WATCH_H
#include <jansson.h>
#include <stddef.h>

struct watch_nvlink;

/* Opens NVML: helper process only. Owner: caller, watch_nvlink_close. NULL: out of memory. */
struct watch_nvlink *watch_nvlink_open(void);
/* {"gpus": [{"pci", "why"?, "links": [a row of the facts' links, with "t_ns", "data_tx_bytes",
 * "data_rx_bytes", "raw_tx_bytes", "raw_rx_bytes", or "rates_why"], "links_why"?: no links}]}, or {"why",
 * "cause"} where NVML does not answer at all. Owner: caller. */
json_t *watch_nvlink_read(struct watch_nvlink *w);
void watch_nvlink_close(struct watch_nvlink *w);

/* {"ports": [{"device", "port", "kind", "state", "physical", "rate_gbit", "rate_text", "lid", "gid",
 * "gid_index", "interface", "t_ns", "counters": {}, "errors": {}, "unreadable": {file: why}}]} below
 * `sys`, which is "/sys" or a folder that has it; data in bytes. {"why"}: the folder is there and cannot be
 * read. Owner: caller. */
json_t *watch_ib_read(const char *sys);

/*
 * One reading of the counters that must not change during a run, for the GPUs with these addresses
 * (`assay __facts counters PCI..`): {"gpus": {PCI: {"t_ns", "counters": {name: n}, "states": {name: n},
 * "signals": {name: n}, "errors": {"link 3": n}}}}. A GPU that does not answer has "why" alone. {"why",
 * "cause"}: NVML does not answer at all. Counters only grow, states come and go, signals are those of the
 * sampler. It opens NVML: helper process only. Owner: caller.
 */
json_t *watch_counters(const char *const *pci, size_t count);
/* Asks CUDA for a context on the GPU, writes to its memory and reads that back (`assay __facts alive PCI`).
 * {}: it works. {"why"}: it does not. {"missing"}: this machine has no CUDA. Helper process only. Owner:
 * caller. */
json_t *watch_alive(const char *pci);
#endif
