/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/figure/figure.h"
#include <stddef.h>
#include <string.h>

static const struct figure figures[] = {
	{"compute.", "flop_rate", "FLOP/s", false},	{"memory", "byte_rate", "B/s", false},
	{"cache", "byte_rate", "B/s", false},		{"link", "link_rate", "B/s", false},
	{"latency", "latency_ns", "ns", true},		{"clock", "message_rate", "Hz", false},
	{"mixed", "flop_rate", "FLOP/s", false},	{"collective", "link_rate", "B/s", false},
	{"training", "tokens_per_s", "token/s", false},
};

const struct figure *figure_of_limit(const char *limit)
{
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (!strncmp(limit, figures[i].limit, strlen(figures[i].limit)))
			return &figures[i];
	return NULL;
}
