/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of view_build. */
#ifndef REPORT_VIEW_BUILD_H
#define REPORT_VIEW_BUILD_H
#include "report/view/view.h"

/* Fills the row of one case. Titles may still be equal (view_distinguish). NO_RESOURCE: out of memory. */
enum status view_row_build(struct view_row *row, struct view *v, const struct record_case *c,
			   const struct judgement *j, struct error *err);
/* Appends to equal titles of one target the options in which the cases differ. */
void view_distinguish(struct view *v);
/* Builds "What to do" from the rows. */
void view_todos_build(struct view *v);
/* Builds the hardware parts that a ticket can name. */
void view_parts_build(struct view *v);
/* Builds curves, matrices, folds, the list of cases without a verdict, and settings to try. Needs rows,
 * titles and todos. NO_RESOURCE: out of memory. */
enum status view_shape(struct view *v, struct error *err);
/* Joins equal advice for many targets. Needs todos and knobs. NO_RESOURCE: out of memory. */
enum status view_spread_build(struct view *v, struct error *err);
void view_shape_release(struct view *v);
/* False for a case that needs no attention: it was only measured, or it lacks a reference and the suite does
 * not ask for a verdict. */
bool view_asks(const struct view_row *row);
#endif
