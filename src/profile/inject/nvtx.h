/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX ranges and marks, taken where the program calls them: without CUPTI, on CLOCK_MONOTONIC. */
#ifndef PROFILE_INJECT_NVTX_H
#define PROFILE_INJECT_NVTX_H
#include "profile/inject/nvtx_types.h"
#include "profile/inject/writer.h"

/* Attaches to one copy of NVTX (each library of a program may hold one); 1, or 0 where it is too strange. */
int nvtx_attach(nvtx_export *tables);
int nvtx_attach_payload(struct nvtx_module *module);
#endif
