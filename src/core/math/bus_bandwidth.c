/* SPDX-License-Identifier: Apache-2.0 */
#include "core/math/bus_bandwidth.h"

double bus_factor(enum bus_load load, unsigned ranks)
{
	double others = ranks ? (ranks - 1.0) / ranks : 0;

	switch (load) {
	case BUS_OTHERS:
		return others;
	case BUS_OTHERS_TWICE:
		return 2 * others;
	case BUS_ALL:
		break;
	}
	return 1;
}
