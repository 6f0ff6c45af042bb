/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of view_build, each in a file of its own. */
#ifndef REPORT_VIEW_BUILD_H
#define REPORT_VIEW_BUILD_H
#include "report/view/view.h"

/* A case's row but for what tells it apart from its like. NO_RESOURCE out of memory. */
enum status view_row_build(struct view_row *row, struct view *v, const struct record_case *c,
			   const struct judgement *j, struct error *err);
/* Two cases of one target whose plain words agree get the options in which they differ. */
void view_tell_apart(struct view *v);
void view_todos_build(struct view *v);
void view_parts_build(struct view *v);
/* From rows to what is laid out: curves, folds, what nothing judged, knobs. After rows, titles and todos.
 * NO_RESOURCE out of memory. */
enum status view_shape(struct view *v, struct error *err);
/* What advice is laid out, and for whom; after todos and knobs. NO_RESOURCE out of memory. */
enum status view_spread_build(struct view *v, struct error *err);
void view_shape_release(struct view *v);
/* False for what nobody asked to judge and only lacks a reference. */
bool view_asks(const struct view_row *row);
#endif
