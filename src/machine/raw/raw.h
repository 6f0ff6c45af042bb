/* SPDX-License-Identifier: Apache-2.0 */
/* Raw readings of one layer as JSON, made in the facts helper process. These functions open vendor libraries,
 * so only a helper process may call them. */
#ifndef MACHINE_RAW_RAW_H
#define MACHINE_RAW_RAW_H
#include <jansson.h>

/* Each answer is [code, value?]. docs/explanation/design/machine.md has the form. The caller decrefs it.
 * NULL: out of memory. */
json_t *raw_nvml(void);
json_t *raw_cuda(void);
/* Reads the named libraries only (NULL ends the list); NULL: all. Unknown names are ignored. */
json_t *raw_software(const char *const *names);
#endif
