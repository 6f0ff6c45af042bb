/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the exporter's metrics about itself: the catalogue's rows of scope EXPORTER, which are its last
 * ones. */
#ifndef WATCH_PAGE_OWN_H
#define WATCH_PAGE_OWN_H
#include "journal/metrics/catalogue.h"

enum { PAGE_OWN_FIRST = CATALOGUE_BUILD_INFO, PAGE_OWN_COUNT = CATALOGUE_COUNT - PAGE_OWN_FIRST };

struct page_own { /* by row - PAGE_OWN_FIRST */
	double value[PAGE_OWN_COUNT];
	bool present[PAGE_OWN_COUNT];
};
/* Sets a value, which is then present. The row is of scope EXPORTER. */
void page_own_set(struct page_own *own, enum catalogue row, double value);
/* NULL: it is absent. */
const double *page_own_get(const struct page_own *own, enum catalogue row);
/* Sets what the kernel says of this process. */
void page_own_read_process(struct page_own *own);
#endif
