/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and alerts as YAML for Prometheus. */
#include "watch/generate/generate.h"

static const char head[] =
	"# SPDX-License-Identifier: Apache-2.0\n"
	"# Made by `assay list metrics --as %s`; docs/how-to/scrape-a-node.md explains it.\n"
	"groups:\n";

/* A text in single quotes: YAML changes nothing in it but doubled quotes. */
static void add_quoted(struct text *out, const char *s)
{
	text_add(out, "'");
	for (; *s; s++)
		text_add_bytes(out, *s == '\'' ? "''" : s, *s == '\'' ? 2 : 1);
	text_add(out, "'\n");
}

static void add_group(struct text *out, const char *group, const char **last)
{
	if (*last && !strcmp(*last, group))
		return;
	text_addf(out, "  - name: %s\n    rules:\n", group);
	*last = group;
}

static enum status add_expression(struct text *out, const char *expression, struct error *err)
{
	struct text expanded = {0};
	enum status st = generate_expression(&expanded, expression, err);

	text_add(out, "        expr: ");
	add_quoted(out, text_str(&expanded));
	text_release(&expanded);
	return st;
}

enum status generate_rules(struct text *out, struct error *err)
{
	const struct generate_rule *r;
	const char *last = NULL;
	enum status st = STATUS_OK;

	text_addf(out, head, "prometheus-rules");
	for (size_t i = 0; !st && (r = generate_rule_at(i)); i++) {
		add_group(out, r->group, &last);
		text_addf(out, "      # %s.\n      - record: %s\n", r->help, r->name);
		st = add_expression(out, r->expression, err);
	}
	return st;
}

static enum status add_alert(struct text *out, const struct generate_alert *a, struct error *err)
{
	enum status st;

	text_addf(out, "      - alert: %s\n", a->name);
	st = add_expression(out, a->expression, err);
	if (strcmp(a->lasts, "0m") != 0)
		text_addf(out, "        for: %s\n", a->lasts);
	text_addf(out, "        labels:\n          severity: %s\n        annotations:\n          summary: ",
		  a->severity);
	add_quoted(out, a->summary);
	text_add(out, "          description: ");
	add_quoted(out, a->action);
	return st;
}

enum status generate_alerts(struct text *out, struct error *err)
{
	const struct generate_alert *a;
	const char *last = NULL;
	enum status st = STATUS_OK;

	text_addf(out, head, "alerts");
	for (size_t i = 0; !st && (a = generate_alert_at(i)); i++) {
		add_group(out, a->group, &last);
		st = add_alert(out, a, err);
	}
	return st;
}
