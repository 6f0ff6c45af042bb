/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the fake CUPTI's results. */
#include "vendor/cupti.h"

int cuptiGetResultString(int result, const char **name);

int cuptiGetResultString(int result, const char **name)
{
	static const struct {
		int result;
		const char *name;
	} rows[] = {
#define X(name, value, status, cause) {value, #name},
		CUPTI_RESULTS(X)
#undef X
	};

	*name = "CUPTI_ERROR_UNKNOWN";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].result == result)
			*name = rows[i].name;
	return CUPTI_SUCCESS;
}
