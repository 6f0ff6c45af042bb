/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the figure of a case, its main result, by the resource that limits its work. */
#ifndef JOURNAL_FIGURE_FIGURE_H
#define JOURNAL_FIGURE_FIGURE_H
#include <stdbool.h>

/* figure_of_limit returns static data; NULL: such work has no figure. */
struct figure {
	const char *limit; /* prefix of the limit's name */
	const char *field, *unit;
	bool lower; /* lower is better */
};
const struct figure *figure_of_limit(const char *limit);

/* The way that a run reports for a collective (field nvls): unknown, over the links only, or with additions
 * in the switch. The expected rate depends on it. */
enum figure_way { FIGURE_UNTOLD, FIGURE_LINKS, FIGURE_SWITCH, FIGURE_WAYS };
#endif
