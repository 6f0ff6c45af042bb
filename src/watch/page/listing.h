/* SPDX-License-Identifier: Apache-2.0 */
/* The entities of a page: by scope, within the limits, without duplicates, each with its labels as text. */
#ifndef WATCH_PAGE_LISTING_H
#define WATCH_PAGE_LISTING_H
#include "watch/page/page.h"

struct listed {
	const struct watch_entity *entity;
	double age;	   /* seconds; negative: it never answered */
	double weight;	   /* entities with a higher weight stay */
	const char *group; /* the GPU that the limit is for; "": the node */
	/* Positions in listing.text: those of assay's names, those of dcgm-exporter's, and those of
	 * assay_gpu_info. The last two differ from the first for GPUs only. */
	size_t labels, dcgm_labels, info_labels;
};
struct listing {
	struct listed *item;
	size_t begin[METRIC_SCOPE_COUNT + 1]; /* a scope's items are begin[scope] to begin[scope + 1] */
	size_t left_out[METRIC_SCOPE_COUNT];  /* series of entities beyond the limits */
	struct text text;
};

/* False: no memory. Release it in any case. */
bool listing_make(struct listing *l, const struct watch_state *s, const struct page_spec *spec);
void listing_release(struct listing *l);
/* The text of an item's labels: a="b",c="d". Borrowed. */
const char *listing_labels(const struct listing *l, size_t at);
/* Appends name="value" to a list of labels. The value is escaped, invalid UTF-8 is replaced, and a long value
 * is cut. An empty value is no label and adds nothing. */
void listing_add_label(struct text *out, const char *name, const char *value);
#endif
