/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules, alerts and dashboards for Prometheus and Grafana, and the reference page, made from the catalogue
 * and the server's metrics. An expression names a metric by its symbol, so it follows the tables.
 *   @GPU_POWER         the metric's name, with the row's fixed label if it has one
 *   @GPU_POWER{a="b"}  the same, with more labels
 *   @*GPU_HELD_IDLE    the name alone: all rows of this name
 *   @TTFT_bucket       a histogram's part
 */
#ifndef WATCH_GENERATE_GENERATE_H
#define WATCH_GENERATE_GENERATE_H
#include <jansson.h>
#include "core/text/text.h"

struct generate_rule {
	const char *group, *name, *expression, *help;
};
struct generate_alert {
	const char *group, *name, *expression, *lasts; /* how long the expression holds before it fires */
	const char *severity;			       /* critical, warning or info */
	const char *summary, *action;
};
struct generate_query {
	const char *expression, *legend;
};
enum { GENERATE_QUERIES_MOST = 4 };
struct generate_panel {
	const char *title, *kind, *unit; /* Grafana's panel type and unit */
	unsigned width;			 /* of 24 columns */
	struct generate_query query[GENERATE_QUERIES_MOST];
};
struct generate_dashboard {
	const char *name, *title, *help;
	const struct generate_panel *panel;
	size_t count;
	bool servers, prices; /* has the variables $server; $price_kwh, $pue and $gpu_hour */
};
/* The tables. NULL: there are no more. */
const struct generate_rule *generate_rule_at(size_t i);
const struct generate_alert *generate_alert_at(size_t i);
const struct generate_dashboard *generate_dashboard_at(size_t i);

/* Appends an expression with the names of the metrics. BUG: it names a symbol that no table has. */
enum status generate_expression(struct text *out, const char *expression, struct error *err);

enum status generate_rules(struct text *out, struct error *err);
enum status generate_alerts(struct text *out, struct error *err);
/* One dashboard by its name, or an array of all of them (NULL). BAD_INPUT: there is none of this name. Owner:
 * caller. */
enum status generate_grafana(json_t **out, const char *name, struct error *err);
/* The reference page in Markdown. */
void generate_reference(struct text *out);
/* All metrics as rows of texts, for lists. Owner: caller. */
json_t *generate_list(void);
#endif
