/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/list.h"
#include "probe/registry.h"

#define X(name) extern const struct probe probe_##name;
PROBES(X)
#undef X

#define X(name) &probe_##name,
const struct probe *const probe_list[] = {PROBES(X) NULL};
#undef X
