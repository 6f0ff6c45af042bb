/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's answers, each [code, value]; the value only where the code is 0. Keys are the rows of vendor/nvml.h.
 * Shared by the files that ask. */
#ifndef MACHINE_RAW_NVML_H
#define MACHINE_RAW_NVML_H
#include <jansson.h>
#include "vendor/nvml.h"

/* map[key] = [ret, value]. Steals `value`, which may be NULL: none. */
void raw_put(json_t *map, const char *key, nvmlReturn_t ret, json_t *value);
json_t *raw_integer(unsigned long long v);
json_t *raw_pci(const nvmlPciInfo_t *pci);

/* All of one GPU by its index: {"by_index", "calls", "fields", "links"}. Owner: caller. */
json_t *raw_nvml_gpu(const struct nvml *n, unsigned index);
/* What use changes: clocks, memory, temperatures, processes. */
void raw_nvml_state(const struct nvml *n, nvmlDevice_t d, json_t *calls);
/* Memory errors, and what was done about them. */
void raw_nvml_ecc(const struct nvml *n, nvmlDevice_t d, json_t *calls);
/* The device's field values that are facts. */
void raw_nvml_fields(const struct nvml *n, nvmlDevice_t d, json_t *fields);
/* Its fields of time that a clock was held down, in ns: the sampler's and a counter reading's. */
void raw_nvml_violations(const struct nvml *n, nvmlDevice_t d, json_t *fields);
/* Its NVLinks, each with its own field values, in the order of their numbers. */
void raw_nvml_links(const struct nvml *n, nvmlDevice_t d, json_t *links);
/* The field values of one of them. */
void raw_nvml_link_fields(const struct nvml *n, nvmlDevice_t d, unsigned link, json_t *fields);
#endif
