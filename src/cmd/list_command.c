/* SPDX-License-Identifier: Apache-2.0 */
/* assay list: shows what assay can run, and how it would judge the results. */
#include <jansson.h>
#include "cmd/help/help.h"
#include "cmd/list_expectations.h"
#include "cmd/shared/show.h"
#include "core/file/embedded.h"
#include "core/input/tree.h"
#include "kernel/fatbin.h"
#include "machine/nccl/variables.h"
#include "probe/registry.h"
#include "watch/generate/generate.h"

struct list_opts {
	const char *what, *name, *suite, *machine, *expectations, *as;
	bool json, all;
};

static const char *const what_words[] = {"probes",	 "engines", "suites",  "kernels", "causes",
					 "expectations", "nccl",    "metrics", NULL};
static const char *const as_words[] = {"prometheus-rules", "alerts", "grafana", "doc", NULL};

static const struct opt opts[] = {
	OPT_ROW(struct list_opts, what, .name = "what", .positional = true, .preset = "probes",
		.shown = "LIST", .choices = what_words, .help = "what to list"),
	OPT_ROW(struct list_opts, name, .name = "name", .positional = true, .shown = "NAME",
		.help = "probes: show only this probe, with its options; metrics --as grafana: only this dashboard"),
	OPT_ROW(struct list_opts, suite, .name = "suite", .preset = "quick", .shown = "SUITE|FILE",
		.help = "expectations: for the cases of this suite"),
	OPT_ROW(struct list_opts, machine, .name = "machine", .shown = "DIR",
		.help = "expectations: for a recorded machine instead of this one"),
	OPT_ROW(struct list_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "expectations: use these instead of the built-in ones"),
	OPT_ROW(struct list_opts, as, .name = "as", .choices = as_words, .shown = "FORM",
		.help = "metrics: print recording rules or alerts for Prometheus, dashboards for Grafana, or the "
			"reference page"),
	OPT_ROW(struct list_opts, all, .name = "all", .help = "include the probes that only tests use"),
	OPT_ROW(struct list_opts, json, .name = "json", .help = "print the list as JSON"),
};

static void target_words(unsigned targets, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s%s", targets & TARGET_CPU ? "cpu " : "",
		 targets & TARGET_GPU ? "gpu " : "", targets & TARGET_PAIR ? "pair " : "",
		 targets & TARGET_NODE ? "node " : "");
	if (*out)
		out[strlen(out) - 1] = '\0';
}

static json_t *option_rows(const struct opt_table *t)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < t->count; i++) {
		const struct opt *row = &t->rows[i];
		char word[160];

		help_value_word(row, word, sizeof(word));
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s*, s:s}", "name", row->name, "value", word,
						"default", row->preset, "help", row->help ? row->help : ""));
	}
	return rows;
}

/* Builds rows as objects of texts with the same keys in the same order. In JSON, a probe has its options
 * too. */
static json_t *probe_rows(bool all, const struct probe *only, bool options)
{
	json_t *rows = json_array();

	for (const struct probe *const *p = probe_list; *p; p++) {
		json_t *row;

		if (only ? *p != only : (*p)->hidden && !all)
			continue;
		row = json_pack("{s:s, s:s, s:s}", "probe", (*p)->name, "kind",
				(*p)->kind == PROBE_TIMED ? "timed" : "reading", "summary", (*p)->summary);
		if (options)
			json_object_set_new(row, "options", option_rows(&(*p)->opts));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *engine_rows(bool all)
{
	json_t *rows = json_array();

	for (const struct probe *const *p = probe_list; *p; p++)
		for (const struct engine *const *e = (*p)->engines; (all || !(*p)->hidden) && e && *e; e++) {
			char targets[32];

			target_words((*e)->targets, targets, sizeof(targets));
			json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s}", "probe", (*p)->name,
							      "engine", (*e)->name, "targets", targets,
							      "libraries", (*e)->libs ? (*e)->libs : ""));
		}
	return rows;
}

static json_t *suite_rows(void)
{
	json_t *rows = json_array();
	const struct embedded *e;

	for (size_t i = 0; (e = embedded_at(i)); i++) {
		struct tree *t = NULL;

		if (strncmp(e->name, "suites/", 7) ||
		    tree_parse(&t, e->name, (const char *)e->data, e->size, NULL))
			continue;
		json_array_append_new(rows, json_pack("{s:s, s:s}", "suite", tree_text(t, "name", ""),
						      "description", tree_text(t, "description", "")));
		tree_free(t);
	}
	return rows;
}

static json_t *kernel_rows(void)
{
	json_t *rows = json_array();
	const struct kernel_fatbin *f;

	for (size_t i = 0; (f = kernel_fatbin_at(i)); i++)
		json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "kernels", f->name, "architectures",
						      f->architectures, "ran", f->ran));
	return rows;
}

static json_t *cause_rows(void)
{
	json_t *rows = json_array();

	for (unsigned i = 1; i < CAUSE_COUNT; i++)
		json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "cause", cause_name((enum cause)i),
						      "meaning", cause_text((enum cause)i), "action",
						      cause_action((enum cause)i)));
	return rows;
}

static json_t *nccl_rows(void)
{
	json_t *rows = json_array();
	const struct nccl_variable *n;

	for (size_t i = 0; (n = nccl_variable_at(i)); i++)
		json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "variable", n->name, "read by",
						      nccl_reader_word(n->reader), "meaning", n->help));
	return rows;
}

/* Metrics in the form of `as`. */
static enum status print_metrics(const char *as, const char *name, struct error *err)
{
	struct text out = {0};
	json_t *dashboards = NULL;
	enum status st = STATUS_OK;

	if (!strcmp(as, "prometheus-rules"))
		st = generate_rules(&out, err);
	else if (!strcmp(as, "alerts"))
		st = generate_alerts(&out, err);
	else if (!strcmp(as, "grafana"))
		st = generate_grafana(&dashboards, name, err);
	else
		generate_reference(&out);
	if (!st && dashboards)
		show_json(dashboards, JSON_INDENT(1));
	else if (!st)
		show_text(&out, UTF8_KEEP_LINES);
	json_decref(dashboards);
	text_release(&out);
	return st;
}

static bool takes_name(const struct list_opts *o)
{
	return !strcmp(o->what, "probes") || (o->as && !strcmp(o->as, "grafana"));
}

static enum status check_options(const struct list_opts *o, struct error *err)
{
	if (o->as && strcmp(o->what, "metrics") != 0)
		return error_set(err, STATUS_BAD_INPUT, "--as works only with list metrics, not with list %s",
				 o->what);
	if (o->as && o->json)
		return error_set(err, STATUS_BAD_INPUT, "--as and --json cannot be combined");
	if (o->name && !takes_name(o))
		return error_set(
			err, STATUS_BAD_INPUT,
			"list %s does not accept a name; only list probes and list metrics --as grafana do",
			o->what);
	return STATUS_OK;
}

enum { COLUMNS = 8 };

/* Approximate width on a terminal: the number of bytes that begin a character. */
static int shown_width(const char *s)
{
	int width = 0;

	for (; *s; s++)
		width += (*s & 0xc0) != 0x80;
	return width;
}

/* Sets each width to that of the widest entry or of the heading. */
static void column_widths(const json_t *rows, int width[COLUMNS])
{
	const char *name;
	json_t *row, *v;
	size_t i;

	json_array_foreach((json_t *)rows, i, row)
	{
		int column = 0;

		json_object_foreach(row, name, v)
		{
			int entry = shown_width(json_string_value(v)), least = shown_width(name);
			int widest = entry > least ? entry : least;

			if (column < COLUMNS && widest > width[column])
				width[column] = widest;
			column++;
		}
	}
}

/* Adds one line: the headings, or the entries of `row`. The last column is not padded. */
static void add_line(struct text *out, const json_t *row, bool names, const int width[COLUMNS])
{
	int column = 0, last = (int)json_object_size(row) - 1;
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)row, name, v)
	{
		struct text cell = {0};

		utf8_add_clean(&cell, names ? name : json_string_value(v), UTF8_KEEP_NOTHING);
		text_add(out, text_str(&cell));
		if (column < last && column < COLUMNS)
			text_addf(out, "%*s", width[column] + 2 - shown_width(text_str(&cell)), "");
		text_release(&cell);
		column++;
	}
	text_add(out, "\n");
}

static void print_table(const json_t *rows)
{
	int width[COLUMNS] = {0};
	struct text out = {0};
	json_t *row;
	size_t i;

	column_widths(rows, width);
	add_line(&out, json_array_get(rows, 0), true, width);
	json_array_foreach((json_t *)rows, i, row) add_line(&out, row, false, width);
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct list_opts *o = opts_;
	struct error err = {0};
	const struct probe *only = NULL;
	json_t *rows = NULL;

	if (check_options(o, &err) || (o->as && print_metrics(o->as, o->name, &err)))
		return command_complain(c, &err);
	if (o->as)
		return EXIT_PASS;
	if (o->name && !(only = help_probe_named(o->name, &err)))
		return command_complain(c, &err);
	if (only && !o->json) {
		help_probe(stdout, only);
		return EXIT_PASS;
	}
	if (!strcmp(o->what, "probes"))
		rows = probe_rows(o->all, only, o->json);
	else if (!strcmp(o->what, "engines"))
		rows = engine_rows(o->all);
	else if (!strcmp(o->what, "suites"))
		rows = suite_rows();
	else if (!strcmp(o->what, "kernels"))
		rows = kernel_rows();
	else if (!strcmp(o->what, "causes"))
		rows = cause_rows();
	else if (!strcmp(o->what, "nccl"))
		rows = nccl_rows();
	else if (!strcmp(o->what, "metrics"))
		rows = generate_list();
	else if (list_expectations(&rows, o->json, o->suite, o->machine, o->expectations, c->stop, c->log,
				   &err))
		return command_complain(c, &err);
	if (o->json)
		show_json(rows, JSON_INDENT(1));
	else
		print_table(rows);
	json_decref(rows);
	return EXIT_PASS;
}

const struct command command_list_command = {
	.name = "list",
	.summary = "list probes, suites, causes of verdicts, metrics, and the expected ranges of cases",
	.example = "assay list expectations --suite quick   # expected range of every case on this machine",
	.help = "probes, engines: what assay can measure or read.\n"
		"suites: what assay check can run.\n"
		"kernels: the files of GPU code, the architectures in each, and those that have run on a real device "
		"(none if the program was built without nvcc).\n"
		"causes: every cause of a verdict, with advice.\n"
		"nccl: the NCCL variables that assay knows, and what they do.\n"
		"metrics: every metric of the exporter and of the server. --as prints rules, alerts and dashboards that "
		"are made from them.\n"
		"expectations: for each case of a suite on this machine, the physical bound, the expected range, and "
		"their sources. It runs nothing.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct list_opts)},
	.alone = true,
	.run = run,
};
