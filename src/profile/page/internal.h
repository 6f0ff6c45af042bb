/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a page, the same in every form; page.c's own. */
#ifndef PROFILE_PAGE_INTERNAL_H
#define PROFILE_PAGE_INTERNAL_H
#include "profile/page/kernel_label.h"
#include "profile/page/page.h"
#include "report/tables/grid.h"

/* Each table that has rows, in order; `section` where one begins, else NULL. Lent for the call. */
typedef void page_visit(void *arg, const char *section, const struct grid *g);
void page_each(const struct page *p, page_visit *visit, void *arg);

/* Into an empty grid; without rows there is nothing to show. */
void page_steps(struct grid *g, const struct page *p);
void page_devices(struct grid *g, const struct page *p);
void page_start_up(struct grid *g, const struct page *p);
void page_overlap(struct grid *g, const struct page *p);
void page_nccl(struct grid *g, const struct page *p);
void page_copies(struct grid *g, const struct page *p);
void page_counters(struct grid *g, const struct page *p);
/* What ran on each device when, at most eight of them, as SVG; false: on none. */
bool page_lanes(struct text *svg, const struct page *p);
/* Kernels under the ceilings of their device, as SVG; why there is none, where there is none. */
bool page_roofline(struct text *svg, const struct page *p, const char **why);
/* Foreign text, cut where it is long. */
void page_cell_name(struct grid *g, const char *name);
/* The kernel's label, with its name as a hint; true: they differ. */
bool page_cell_kernel(struct grid *g, struct kernel_labels *labels, const char *name);

const char *page_time(char out[32], double ns);
/* "GPU 1 of pid 77, NVIDIA H100" */
void page_device_name(struct text *out, const struct timeline *t, uint16_t process, uint32_t device);
/* "12.3 %"; "" where there is no whole. */
void page_cell_share(struct grid *g, double part, double whole);
void page_cell_time(struct grid *g, double ns);
void page_cell_count(struct grid *g, uint64_t count);
#endif
