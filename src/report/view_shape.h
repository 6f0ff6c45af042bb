/* SPDX-License-Identifier: Apache-2.0 */
/* From rows to what is laid out: curves, folds, what nothing judged, knobs. */
#ifndef REPORT_VIEW_SHAPE_H
#define REPORT_VIEW_SHAPE_H
#include "report/view.h"

/* After rows, titles and todos. NO_RESOURCE out of memory. */
enum status view_shape(struct view *v, struct error *err);
void view_shape_release(struct view *v);
/* False for what nobody asked to judge and only lacks a reference. */
bool view_asks(const struct view_row *row);
#endif
