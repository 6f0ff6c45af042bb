/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's facts by name, present or absent. */
#include "machine/machine.h"

bool gpu_has(const struct gpu *g, enum gpu_fact fact)
{
	return g->present >> fact & 1;
}

double gpu_get(const struct gpu *g, enum gpu_fact fact, double fallback)
{
	return gpu_has(g, fact) ? g->fact[fact] : fallback;
}

#define X(name, unit, layer, help) #name,
static const char *const names[] = {GPU_FACTS(X)};
#undef X
#define X(name, unit, layer, help) unit,
static const char *const units[] = {GPU_FACTS(X)};
#undef X

const char *gpu_fact_name(enum gpu_fact fact)
{
	return names[fact];
}

const char *gpu_fact_unit(enum gpu_fact fact)
{
	return units[fact];
}
