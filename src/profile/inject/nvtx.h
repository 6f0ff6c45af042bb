/* SPDX-License-Identifier: Apache-2.0 */
/* Records NVTX ranges and marks when the program calls NVTX. Needs no CUPTI. Times are CLOCK_MONOTONIC. */
#ifndef PROFILE_INJECT_NVTX_H
#define PROFILE_INJECT_NVTX_H
#include "profile/inject/nvtx_types.h"
#include "profile/inject/writer.h"

/* Attaches to one copy of NVTX; each library of a program may contain one. Returns 1, or 0 if its tables are
 * incompatible. */
int nvtx_attach(nvtx_export *tables);
int nvtx_attach_payload(struct nvtx_module *module);
#endif
