/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_REGISTRY_H
#define PROBE_REGISTRY_H
#include "run/probe.h"

extern const struct probe *const probe_list[]; /* NULL ends */
#endif
