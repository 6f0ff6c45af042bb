/* SPDX-License-Identifier: Apache-2.0 */
/* What the facts helper answers: one layer's raw readings as JSON. These open vendor libraries: helper
 * process only. */
#ifndef MACHINE_RAW_RAW_H
#define MACHINE_RAW_RAW_H
#include <jansson.h>

/* Each answer is [code, value?]. Owner: caller; NULL: out of memory. docs/explanation/design/machine.md has
 * the form. */
json_t *raw_nvml(void);
json_t *raw_cuda(void);
/* The libraries named alone (NULL ends); NULL: all. A name that is not known is passed over. */
json_t *raw_software(const char *const *names);
#endif
