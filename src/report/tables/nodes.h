/* SPDX-License-Identifier: Apache-2.0 */
/* The section "Nodes" of a team's report: who was there, and in what the nodes differ. As rows of texts, so
 * that every rendering shows the same. */
#ifndef REPORT_TABLES_NODES_H
#define REPORT_TABLES_NODES_H
#include "report/view/view.h"

enum { NODES_COLUMNS = 5, NODES_DIFFERENCE_COLUMNS = 4 };
/* "node", "state", "ranks", "GPUs", "clock" */
extern const char *const nodes_headings[NODES_COLUMNS];
/* "fact", "most nodes", "the others", "what it does"; of two nodes the first and the other */
const char *const *nodes_difference_headings(const struct view *v);

/* False: a run of one process; there is no such section. */
bool nodes_any(const struct view *v);
/* So many that a reader is told of those alone that ask for something, where there is no room for all. */
bool nodes_many(const struct view *v);
typedef void nodes_visit(void *arg, enum verdict verdict, const char *const *cells);
/* A row a node. WARN: its journals are not whole, or its ranks outnumber its CPUs. */
void nodes_each(const struct view *v, nodes_visit *visit, void *arg);
/* A row a fact, what hurts first, with WARN; the others are only shown (MEASURED). */
void nodes_each_difference(const struct view *v, nodes_visit *visit, void *arg);
/* What is said where no fact differs: that all are alike, or that there was nothing to compare. */
const char *nodes_alike(const struct view *v);
void nodes_markdown(struct text *out, const struct view *v);
void nodes_html(struct text *out, const struct view *v);
/* nodes.csv: a row a fact and node that differs. */
void nodes_csv(struct text *out, const struct view *v);
#endif
