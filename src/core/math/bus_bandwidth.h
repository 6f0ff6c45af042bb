/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a collective transfers over a rank's link, per byte of the collective's size:
 * docs/explanation/methods/collectives.md, "Bus bandwidth". */
#ifndef CORE_MATH_BUS_BANDWIDTH_H
#define CORE_MATH_BUS_BANDWIDTH_H

/* Parts of the larger side that cross the link: all of it, the other ranks' parts, or twice the other
 * ranks' parts. */
enum bus_load { BUS_ALL, BUS_OTHERS, BUS_OTHERS_TWICE };
/* The factor for one rank or none is 0, except for BUS_ALL, where it is always 1. */
double bus_factor(enum bus_load load, unsigned ranks);
#endif
