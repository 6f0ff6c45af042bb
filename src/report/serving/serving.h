/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a server's run: results of its requests, and the life of its engines. */
#ifndef REPORT_SERVING_SERVING_H
#define REPORT_SERVING_SERVING_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* The case of a server; NULL: the run has none. */
const struct record_case *serving_case(const struct view *v);
/* Fills one row per result, with its meaning. False: the run has no server, or it did not end by itself. */
bool serving_grid(struct grid *g, const struct view *v);
/* Fills one row per start of the engine: how long it loaded and served, and how it ended. False: the run
 * has none. */
bool serving_engines_grid(struct grid *g, const struct view *v);
/* Fills one row per component of the last engine that told its memory: planned, and used at most. False: none
 * did. */
bool serving_memory_grid(struct grid *g, const struct view *v);
#endif
