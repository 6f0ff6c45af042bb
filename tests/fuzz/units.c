/* SPDX-License-Identifier: Apache-2.0 */
/* A number with a unit is finite or refused; an exact integer is what the floating door says, to its
 * precision. */
#include "fuzz.h"

#include <math.h>

#include "core/text/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const units[] = {"", "B", "s", "ns", "W", "Hz", "C", "MiB"};
	char *text = fuzz_text(data, size), shown[64];
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double value = -1;
		uint64_t whole = 0;
		enum status st = units_parse(&value, text, units[i], NULL);
		enum status st_whole = units_parse_u64(&whole, text, units[i], NULL);

		FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
		FUZZ_CHECK(st_whole == STATUS_OK || st_whole == STATUS_BAD_INPUT);
		if (!st_whole) /* the floating door overflows earlier: 0e999h is a whole 0 */
			FUZZ_CHECK(st || fabs(value - (double)whole) <= 1e-9 * (1 + fabs(value)));
		if (st)
			continue;
		FUZZ_CHECK(isfinite(value));
		units_format(shown, sizeof(shown), value, units[i]);
		FUZZ_CHECK(shown[0] && strlen(shown) < sizeof(shown));
	}
	free(text);
	return 0;
}
