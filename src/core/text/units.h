/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and prints numbers with units. GB = 1e9, GiB = 2^30. Units are never guessed. */
#ifndef CORE_TEXT_UNITS_H
#define CORE_TEXT_UNITS_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/* Reads a finite decimal number and an optional unit of the same dimension as `unit`: "B": B kB MB GB TB
 * KiB MiB GiB TiB (K M G T alone = binary), "s": ns us ms s min h, "ms" likewise, "W": mW W kW, "Hz", "":
 * none. The result is in `unit`. Trailing bytes, NaN and infinities are BAD_INPUT. */
enum status units_parse(double *out, const char *text, const char *unit, struct error *err);
/* Reads an exact unsigned integer with the same units; a fraction of a byte is BAD_INPUT. */
enum status units_parse_u64(uint64_t *out, const char *text, const char *unit, struct error *err);
/* Formats a value for people: "4.81 TB/s", "61.0 TFLOPS", "12.3 us". Three significant digits, SI
 * prefixes. */
void units_format(char *out, size_t size, double value, const char *unit);
/* Formats seconds as a clock does: "0:07", "12:40", "1:02:03"; negative ones are 0. */
void units_format_clock(char *out, size_t size, double time_s);
#endif
