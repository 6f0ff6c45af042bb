/* SPDX-License-Identifier: Apache-2.0 */
/* Dashboards as JSON for Grafana. Only members that Grafana's schema of version 36 and later has are used. */
#include "watch/generate/generate.h"

enum { SCHEMA_VERSION = 39, COLUMNS = 24, SMALL_HEIGHT = 4, HEIGHT = 8 };

static json_t *source(void)
{
	return json_pack("{s:s, s:s}", "type", "prometheus", "uid", "${datasource}");
}

/* ---- variables ---- */

static json_t *source_variable(void)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:b}", "name", "datasource", "label", "Prometheus",
			 "type", "datasource", "query", "prometheus", "hide", 0, "skipUrlSync", 0);
}

/* The instances that have a metric. */
static json_t *instance_variable(const char *name, const char *label, const char *metric)
{
	struct text query = {0};
	json_t *v;

	text_addf(&query, "label_values(%s, instance)", metric);
	v = json_pack("{s:s, s:s, s:s, s:o, s:s, s:i, s:i, s:b, s:b, s:s, s:i, s:b}", "name", name, "label",
		      label, "type", "query", "datasource", source(), "query", text_str(&query), "refresh", 2,
		      "sort", 1, "multi", 1, "includeAll", 1, "allValue", ".*", "hide", 0, "skipUrlSync", 0);
	text_release(&query);
	return v;
}

static json_t *text_variable(const char *name, const char *label, const char *value)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:{s:s, s:s}, s:i, s:b}", "name", name, "label", label, "type",
			 "textbox", "query", value, "current", "text", value, "value", value, "hide", 0,
			 "skipUrlSync", 0);
}

static json_t *variables(const struct generate_dashboard *d, struct error *err)
{
	struct text node = {0}, server = {0};
	json_t *list = json_array();

	if (!generate_expression(&node, "@EXPORTER_READER_UP", err) &&
	    !generate_expression(&server, "@ENGINE_READY", err)) {
		json_array_append_new(list, source_variable());
		json_array_append_new(list, instance_variable("instance", "Node", text_str(&node)));
		if (d->servers)
			json_array_append_new(list, instance_variable("server", "Server", text_str(&server)));
	}
	if (d->prices) {
		json_array_append_new(list, text_variable("price_kwh", "Price of a kWh, $", "0.16"));
		json_array_append_new(list, text_variable("pue", "PUE", "1.3"));
		json_array_append_new(list, text_variable("gpu_hour", "Price of a GPU hour, $", "2.50"));
	}
	text_release(&node);
	text_release(&server);
	return list;
}

/* ---- panels ---- */

static json_t *target(const struct generate_query *q, unsigned i, bool table, struct error *err)
{
	const char ref[] = {(char)('A' + i), '\0'};
	struct text expression = {0};
	json_t *t = NULL;

	if (!generate_expression(&expression, q->expression, err))
		t = json_pack("{s:o, s:s, s:s, s:s, s:b, s:b, s:s}", "datasource", source(), "refId", ref,
			      "expr", text_str(&expression), "legendFormat", q->legend, "instant", table,
			      "range", !table, "format", table ? "table" : "time_series");
	text_release(&expression);
	return t;
}

static json_t *targets(const struct generate_panel *p, struct error *err)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < GENERATE_QUERIES_MOST && p->query[i].expression; i++)
		json_array_append_new(list, target(&p->query[i], i, !strcmp(p->kind, "table"), err));
	return list;
}

static json_t *field_config(const struct generate_panel *p)
{
	json_t *custom = strcmp(p->kind, "timeseries") != 0
				 ? json_object()
				 : json_pack("{s:i, s:i, s:s, s:b}", "lineWidth", 1, "fillOpacity", 10,
					     "showPoints", "never", "spanNulls", 0);
	json_t *defaults =
		json_pack("{s:s, s:{s:s}, s:o, s:{s:s, s:[{s:n, s:s}]}}", "unit", p->unit, "color", "mode",
			  strcmp(p->kind, "timeseries") ? "thresholds" : "palette-classic", "custom", custom,
			  "thresholds", "mode", "absolute", "steps", "value", "color", "green");

	if (!strcmp(p->unit, "percentunit")) {
		json_object_set_new(defaults, "min", json_integer(0));
		json_object_set_new(defaults, "max", json_integer(1));
	}
	return json_pack("{s:o, s:[]}", "defaults", defaults, "overrides");
}

static json_t *panel_options(const struct generate_panel *p)
{
	if (!strcmp(p->kind, "timeseries"))
		return json_pack("{s:{s:s, s:s, s:[s, s], s:b}, s:{s:s, s:s}}", "legend", "displayMode",
				 "list", "placement", "bottom", "calcs", "lastNotNull", "max", "showLegend",
				 1, "tooltip", "mode", "multi", "sort", "desc");
	if (!strcmp(p->kind, "table"))
		return json_pack("{s:b, s:s}", "showHeader", 1, "cellHeight", "sm");
	return json_pack("{s:{s:[s], s:s, s:b}}", "reduceOptions", "calcs", "lastNotNull", "fields", "",
			 "values", 0);
}

/* Where the next panel goes. */
struct place {
	unsigned x, y, height;
};

static json_t *grid_position(struct place *at, const struct generate_panel *p)
{
	unsigned height = strcmp(p->kind, "stat") ? HEIGHT : SMALL_HEIGHT;
	json_t *position;

	if (at->x + p->width > COLUMNS) {
		at->y += at->height;
		at->x = at->height = 0;
	}
	position = json_pack("{s:i, s:i, s:i, s:i}", "x", (int)at->x, "y", (int)at->y, "w", (int)p->width,
			     "h", (int)height);
	at->x += p->width;
	if (height > at->height)
		at->height = height;
	return position;
}

static json_t *panels(const struct generate_dashboard *d, struct error *err)
{
	json_t *list = json_array();
	struct place at = {0};

	for (size_t i = 0; i < d->count; i++) {
		const struct generate_panel *p = &d->panel[i];

		json_array_append_new(list,
				      json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "id", (int)i + 1,
						"type", p->kind, "title", p->title, "datasource", source(),
						"gridPos", grid_position(&at, p), "targets", targets(p, err),
						"fieldConfig", field_config(p), "options", panel_options(p)));
	}
	return list;
}

static json_t *links(void)
{
	return json_pack("[{s:s, s:s, s:s, s:s, s:s, s:[s], s:b, s:b, s:b, s:b}]", "title", "assay", "type",
			 "dashboards", "icon", "external link", "tooltip", "", "url", "", "tags", "assay",
			 "asDropdown", 1, "targetBlank", 0, "includeVars", 1, "keepTime", 1);
}

static json_t *dashboard(const struct generate_dashboard *d, struct error *err)
{
	struct text uid = {0};
	json_t *j;

	text_addf(&uid, "assay-%s", d->name);
	j = json_pack(
		"{s:s, s:s, s:s, s:[s], s:s, s:b, s:i, s:i, s:s, s:{s:s, s:s}, s:{s:o}, s:{s:[]}, s:o, s:o, "
		"s:i}",
		"uid", text_str(&uid), "title", d->title, "description", d->help, "tags", "assay", "timezone",
		"browser", "editable", 1, "graphTooltip", 1, "schemaVersion", SCHEMA_VERSION, "refresh",
		"30s", "time", "from", "now-1h", "to", "now", "templating", "list", variables(d, err),
		"annotations", "list", "links", links(), "panels", panels(d, err), "version", 1);
	text_release(&uid);
	return j;
}

static enum status unknown(const char *name, struct error *err)
{
	const struct generate_dashboard *d;
	struct text names = {0};
	enum status st;

	for (size_t i = 0; (d = generate_dashboard_at(i)); i++)
		text_addf(&names, "%s%s", i ? ", " : "", d->name);
	st = error_set(err, STATUS_BAD_INPUT, "there is no dashboard \"%.100s\"; there are %s", name,
		       text_str(&names));
	text_release(&names);
	return st;
}

enum status generate_grafana(json_t **out, const char *name, struct error *err)
{
	const struct generate_dashboard *d;
	struct error wrong = {0};
	json_t *all = json_array(), *one = NULL;

	for (size_t i = 0; (d = generate_dashboard_at(i)); i++) {
		json_t *j = dashboard(d, &wrong);

		if (name && !strcmp(name, d->name))
			one = json_incref(j);
		json_array_append_new(all, j);
	}
	if (wrong.status || (name && !one)) {
		json_decref(all);
		json_decref(one);
		return wrong.status ? error_set(err, wrong.status, "%s", wrong.text) : unknown(name, err);
	}
	if (name)
		json_decref(all);
	*out = name ? one : all;
	return STATUS_OK;
}
