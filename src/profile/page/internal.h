/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and pictures of a page, shared by all output formats. Private to page.c and the files next to it. */
#ifndef PROFILE_PAGE_INTERNAL_H
#define PROFILE_PAGE_INTERNAL_H
#include "profile/page/kernel_label.h"
#include "profile/page/page.h"
#include "report/tables/grid.h"

/* Called for each table that has rows, in order. `section`: heading if the table begins a section, else NULL.
 * All arguments are lent for the call. */
typedef void page_visit(void *arg, const char *section, const struct grid *g);
void page_each(const struct page *p, page_visit *visit, void *arg);

/* Fill an empty grid. A grid without rows is not shown. */
void page_steps(struct grid *g, const struct page *p);
void page_devices(struct grid *g, const struct page *p);
void page_start_up(struct grid *g, const struct page *p);
void page_overlap(struct grid *g, const struct page *p);
void page_nccl(struct grid *g, const struct page *p);
void page_copies(struct grid *g, const struct page *p);
void page_counters(struct grid *g, const struct page *p);
/* Draws what ran on each device over time as SVG, for at most eight devices. Returns false if there are none.
 */
bool page_lanes(struct text *svg, const struct page *p);
/* Draws the roofline of the counted kernels as SVG. Returns false if there is none; *why then says why. */
bool page_roofline(struct text *svg, const struct page *p, const char **why);
/* Adds foreign text as a cell; long text is cut. */
void page_cell_name(struct grid *g, const char *name);
/* Adds the kernel's label, with the full name as a hint. Returns true if they differ. */
bool page_cell_kernel(struct grid *g, struct kernel_labels *labels, const char *name);

const char *page_time(char out[32], double ns);
/* "GPU 1 of pid 77, NVIDIA H100" */
void page_device_name(struct text *out, const struct timeline *t, uint16_t process, uint32_t device);
/* "12.3 %"; "" if `whole` is 0. */
void page_cell_share(struct grid *g, double part, double whole);
void page_cell_time(struct grid *g, double ns);
void page_cell_count(struct grid *g, uint64_t count);
#endif
