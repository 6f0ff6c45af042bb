/* SPDX-License-Identifier: Apache-2.0 */
/* Raw NVML answers. Each is [code, value], with the value only if the code is 0. Keys are the rows of
 * vendor/nvml.h. Shared by the files of this folder. */
#ifndef MACHINE_RAW_NVML_H
#define MACHINE_RAW_NVML_H
#include <jansson.h>
#include "vendor/nvml.h"

/* Sets map[key] = [ret, value]. Takes ownership of `value`, which may be NULL. */
void raw_put(json_t *map, const char *key, nvmlReturn_t ret, json_t *value);
json_t *raw_integer(unsigned long long v);
json_t *raw_pci(const nvmlPciInfo_t *pci);

/* Reads everything about one GPU by its index: {"by_index", "calls", "fields", "links"}. The caller decrefs
 * it. */
json_t *raw_nvml_gpu(const struct nvml *n, unsigned index);
/* Readings that change during use: clocks, memory, temperatures, processes. */
void raw_nvml_state(const struct nvml *n, nvmlDevice_t d, json_t *calls);
/* Memory errors, and the remaps and retired pages that followed. */
void raw_nvml_ecc(const struct nvml *n, nvmlDevice_t d, json_t *calls);
/* The device's field values that are facts. */
void raw_nvml_fields(const struct nvml *n, nvmlDevice_t d, json_t *fields);
/* Fields with the time for which a clock was reduced, in ns, for telemetry and for readings of health
 * counters. */
void raw_nvml_violations(const struct nvml *n, nvmlDevice_t d, json_t *fields);
/* The device's NVLinks in the order of their numbers, each with its own field values. */
void raw_nvml_links(const struct nvml *n, nvmlDevice_t d, json_t *links);
/* The field values of one link. */
void raw_nvml_link_fields(const struct nvml *n, nvmlDevice_t d, unsigned link, json_t *fields);
#endif
