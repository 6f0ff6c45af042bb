/* SPDX-License-Identifier: Apache-2.0 */
#include "core/math/plausible_range.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

static const struct plausible rows[] = {
#define X(name, low, high, unit, function) {#name, low, high, unit, function},
	PLAUSIBLE(X)
#undef X
};

const struct plausible *plausible_of(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

/* The link widths that PCI Express defines (Base Specification, Link Width). */
static bool is_width(double lanes)
{
	static const double widths[] = {1, 2, 4, 8, 12, 16, 32};

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (lanes == widths[i])
			return true;
	return false;
}

bool plausible(const char *name, double value)
{
	const struct plausible *p = plausible_of(name);

	if (!strcmp(name, "pcie_width") || !strcmp(name, "pcie_width_max"))
		return is_width(value);
	return isfinite(value) && (!p || (value >= p->low && value <= p->high));
}

bool plausible_under_load(const char *name, double value)
{
	static const char *const positive[] = {"sm_clock_mhz", "memory_clock_mhz", "power_w"};

	for (size_t i = 0; i < sizeof(positive) / sizeof(positive[0]); i++)
		if (!strcmp(positive[i], name) && !(value > 0))
			return false;
	return plausible(name, value);
}
