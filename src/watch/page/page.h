/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state as a page for Prometheus. Values that are absent, old or not finite are not written: a page has no
 * sentinels. The number of series is bounded (PAGE_LIMITS).
 */
#ifndef WATCH_PAGE_PAGE_H
#define WATCH_PAGE_PAGE_H
#include "core/text/text.h"
#include "watch/page/own.h"
#include "watch/state.h"

enum page_format {
	PAGE_TEXT,	  /* Prometheus text 0.0.4 */
	PAGE_OPENMETRICS, /* OpenMetrics 1.0 */
	PAGE_FORMATS
};
/* assay: the catalogue's names. dcgm: those of dcgm-exporter, for the rows that it has too. */
enum page_names { PAGE_NAMES_ASSAY, PAGE_NAMES_DCGM, PAGE_NAMES_BOTH };
extern const char *const page_names_words[]; /* by enum page_names; NULL ends */

/* scope, its most entities, and whether this holds for each GPU or for the node. Entities beyond it are left
 * out and counted: of processes and Xids those with the lowest values, otherwise the last ones. */
/* clang-format off */
#define PAGE_LIMITS(X) \
	X(GPU, 64, false) \
	X(GPU_INSTANCE, METRIC_GPU_INSTANCES_MOST, true) \
	X(XID, 32, true) \
	X(NVLINK, 36, true) \
	X(PROCESS, 8, true) \
	X(PORT, 64, false) \
	X(PORT_ERROR, 1280, false) \
	X(INTERFACE, 64, false) \
	X(DISK, 64, false) \
	X(RUN, 16, false) \
	X(CHECK, 16, false) \
	X(READER, 8, false)
/* clang-format on */

struct page_spec {
	enum page_names names;
	unsigned processes;	     /* most processes of a GPU; 0: the limit above */
	uint64_t local_ns, begun_ns; /* this process's CLOCK_MONOTONIC now, and when its feed began */
};

/* Appends the page. Sets the number of series in `own`. */
void page_write(struct text *out, enum page_format format, const struct watch_state *s,
		const struct page_spec *spec, struct page_own *own);
/* The value of the header Content-Type. */
const char *page_content_type(enum page_format format);
/* Most series that a page can have, for a machine with this number of GPUs. */
size_t page_series_most(unsigned gpus);
/* Seconds after which values of this pace are left out. */
double page_age_limit(double interval, enum metric_pace pace);
#endif
