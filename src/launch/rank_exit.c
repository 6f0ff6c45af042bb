/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/rank_exit.h"
#include <stdlib.h>

enum { TOLD = 100, LEADS = 10 };

static const int by_weight[] = {75, 2, 1, 64};
enum { WEIGHTS = sizeof(by_weight) / sizeof(by_weight[0]) };

static bool is_told(int code)
{
	return (code >= TOLD && code < TOLD + WEIGHTS) ||
	       (code >= TOLD + LEADS && code < TOLD + LEADS + WEIGHTS);
}

bool rank_exit_by(int *told, int exit_code)
{
	*told = TOLD + 1;
	if (is_told(exit_code)) {
		*told = exit_code;
		return true;
	}
	for (int w = 0; w < WEIGHTS && exit_code; w++)
		if (by_weight[w] == exit_code) {
			*told = TOLD + w;
			return true;
		}
	if (!exit_code)
		*told = 0;
	return !exit_code;
}

int rank_exit_of(int code, bool leads)
{
	int told;

	rank_exit_by(&told, code);
	return told && leads && told < TOLD + LEADS ? told + LEADS : told;
}

int rank_exit_code(int told)
{
	if (!is_told(told))
		return told ? 2 : 0;
	return by_weight[told >= TOLD + LEADS ? told - TOLD - LEADS : told - TOLD];
}

bool rank_exit_asked(void)
{
	bool asked = getenv(RANK_EXIT_VARIABLE) != NULL;

	unsetenv(RANK_EXIT_VARIABLE);
	return asked;
}
