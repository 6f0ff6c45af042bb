/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a case's rates is its figure: by what its work is limited by. */
#ifndef JOURNAL_FIGURE_FIGURE_H
#define JOURNAL_FIGURE_FIGURE_H
#include <stdbool.h>

/* NULL: such work has no figure. Static. */
struct figure {
	const char *limit; /* how its name begins */
	const char *field, *unit;
	bool lower; /* is better */
};
const struct figure *figure_of_limit(const char *limit);

/* What a run may tell of a collective (field nvls), and what is expected of it goes by: nothing, that the
 * links move it alone, that the switch adds. */
enum figure_way { FIGURE_UNTOLD, FIGURE_LINKS, FIGURE_SWITCH, FIGURE_WAYS };
#endif
