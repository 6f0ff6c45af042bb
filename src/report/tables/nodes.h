/* SPDX-License-Identifier: Apache-2.0 */
/* The section "Nodes" of a run of several nodes: their states and the facts in which they differ. Rows are
 * texts, so that every renderer shows the same. */
#ifndef REPORT_TABLES_NODES_H
#define REPORT_TABLES_NODES_H
#include "report/view/view.h"

enum { NODES_COLUMNS = 5, NODES_DIFFERENCE_COLUMNS = 4 };
/* "node", "state", "ranks", "GPUs", "clock" */
extern const char *const nodes_headings[NODES_COLUMNS];
/* "fact", "most nodes", "other nodes", "effect"; with two nodes "fact", "first node", "other node", "effect"
 */
const char *const *nodes_difference_headings(const struct view *v);

/* False for a run of one process, which has no such section. */
bool nodes_any(const struct view *v);
/* True for so many nodes that brief output shows only those that need attention. */
bool nodes_many(const struct view *v);
typedef void nodes_visit(void *arg, enum verdict verdict, const char *const *cells);
/* Visits one row per node. WARN: the node's journals are incomplete, or it has more ranks than CPUs. */
void nodes_each(const struct view *v, nodes_visit *visit, void *arg);
/* Visits one row per fact. Harmful differences come first, with WARN; the others have MEASURED. */
void nodes_each_difference(const struct view *v, nodes_visit *visit, void *arg);
/* The sentence for a run in which no fact differs: the nodes are alike, or there was nothing to compare.
 * Static. */
const char *nodes_alike(const struct view *v);
void nodes_markdown(struct text *out, const struct view *v);
void nodes_html(struct text *out, const struct view *v);
/* Appends nodes.csv: one row per fact and node that differs. */
void nodes_csv(struct text *out, const struct view *v);
#endif
