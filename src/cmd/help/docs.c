/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the reference pages, the manual page and the shell completions from the program's own tables.
 * `assay __docs DIR` writes them; tests/docs.sh compares them with the committed files. */
#include "cmd/help/docs.h"
#include "cmd/help/help.h"
#include "core/file/file.h"
#include "journal/field.h"
#include "journal/journal.h"
#include "journal/metrics/metrics.h"
#include "probe/registry.h"
#include "serve/fields.h"
#include "telemetry/telemetry.h"
#include "train/config/config.h"
#include "train/run/diagnose.h"
#include "train/run/fields.h"
#include "counter/counter.h"
#include "vendor/list.h"
#include "watch/generate/generate.h"

static const char generated[] =
	"generated from the program's tables; `tests/docs.sh --update` writes it again";

static const char *cell(const char *s)
{
	return s && *s ? s : "–";
}

/* ---- closed lists ---- */

static void add_lists(struct text *out)
{
	text_addf(out,
		  "# Closed lists\n\nThis page is %s.\n\n## Status: the result of a call\n\n| name | meaning "
		  "|\n|---|---|\n",
		  generated);
	for (int i = 0; i < STATUS_COUNT; i++)
		text_addf(out, "| `%s` | %s |\n", status_name(i), status_text(i));
	text_add(out, "\n## Ending: how a case ended\n\n| name | meaning |\n|---|---|\n");
	for (int i = 0; i < ENDING_COUNT; i++)
		text_addf(out, "| `%s` | %s |\n", ending_name(i), ending_text(i));
	text_add(out, "\n## Verdict: the judgement of a case\n\n| name | exit code if required | meaning "
		      "|\n|---|---|---|\n");
	for (int i = 0; i < VERDICT_COUNT; i++)
		text_addf(out, "| `%s` | %d | %s |\n", verdict_name(i), verdict_exit_code(i),
			  verdict_text(i));
	text_add(
		out,
		"\n## Cause: the reason for an error or a verdict\n\n| name | meaning | what to do |\n|---|---|---|\n");
	for (int i = 1; i < CAUSE_COUNT; i++)
		text_addf(out, "| `%s` | %s | %s |\n", cause_name(i), cause_text(i), cell(cause_action(i)));
	text_add(out, "\n## Journal events\n\n");
	for (int i = 0; i < JOURNAL_TYPE_COUNT; i++)
		text_addf(out, "%s`%s`", i ? ", " : "", journal_type_name(i));
	text_add(out, "\n\n## Telemetry signals\n\n| name | unit | kind | period ms | meaning "
		      "|\n|---|---|---|---|---|\n");
#define X(name, unit, kind, period, help)                                                                    \
	text_addf(out, "| `%s` | %s | %s | %d | %s |\n", #name, cell(unit), #kind, period, help);
	TELEMETRY_SIGNALS(X)
#undef X
	text_add(out,
		 "\n## Facts of a GPU\n\n| name | unit | cheapest layer | meaning |\n|---|---|---|---|\n");
#define X(name, unit, layer, help)                                                                           \
	text_addf(out, "| `%s` | %s | %s | %s |\n", #name, cell(unit), #layer, help);
	GPU_FACTS(X)
#undef X
}

/* ---- result fields ---- */

static const char *better_word(int better)
{
	return better > 0 ? "higher" : better < 0 ? "lower" : "–";
}

static void add_field(struct text *out, const struct field *f)
{
	static const char *const kinds[] = {"number", "integer", "text", "bits"};

	text_addf(out, "| `%s` | %s | %s | %s | %s |\n", f->name, cell(f->unit), kinds[f->kind],
		  better_word(f->better), f->help);
}

static void add_fields(struct text *out)
{
	text_addf(out,
		  "# Result fields\n\nThis page is %s.\nA value that was not read is absent, never zero.\n\n",
		  generated);
	text_add(
		out,
		"## Every timed phase\n\n| field | unit | kind | better | meaning |\n|---|---|---|---|---|\n");
	for (const struct field *const *f = result_fields; *f; f++)
		add_field(out, *f);
	for (const struct probe *const *p = probe_list; *p; p++) {
		if (!(*p)->field_count)
			continue;
		text_addf(out,
			  "\n## %s\n\n| field | unit | kind | better | meaning |\n|---|---|---|---|---|\n",
			  (*p)->name);
		for (size_t i = 0; i < (*p)->field_count; i++)
			add_field(out, &(*p)->fields[i]);
	}
}

/* ---- training ---- */

static void add_option_table(struct text *out, const struct opt_table *t, const char *dashes);

static void add_training(struct text *out)
{
	text_addf(out,
		  "# Training\n\n"
		  "This page is %s.\n\n"
		  "`assay train` reads its configuration from a YAML or JSON file with the sections below. "
		  "Each section is a map. [examples/train.yaml](../../examples/train.yaml) is an example.\n\n"
		  "- A setting that takes several words accepts one word or a list.\n"
		  "- assay also accepts the names that other programs use: `lora_alpha`, `lora_dropout`, "
		  "`model_name_or_path`, `gradient_clipping`, `train_file`.\n"
		  "- `model: PATH` is short for a section with the model's path.\n"
		  "- Relative paths start at the folder in which you start assay.\n"
		  "- `deepspeed` takes a configuration of DeepSpeed: a file or a map. assay uses its stage, "
		  "micro-batch, accumulation, clipping and bf16. It lists the other settings and ignores "
		  "them.\n",
		  generated);
	for (size_t i = 0; i < config_section_count; i++) {
		text_addf(out, "\n## %s: %s\n", config_sections[i].name, config_sections[i].help);
		add_option_table(out, &config_sections[i].table, "");
	}
	text_add(out,
		 "\n## Findings\n\nProblems that assay finds during training, and the setting that helps.\n\n"
		 "| finding | ends the run | setting |\n|---|---|---|\n");
	for (int i = 0; i < FINDING_COUNT; i++)
		text_addf(out, "| `%s` | %s | %s |\n", finding_word((enum finding)i),
			  finding_ends((enum finding)i) ? "yes" : "no", finding_knob((enum finding)i));
	text_add(out, "\n## Results\n\n| field | unit | better | meaning |\n|---|---|---|---|\n");
#define X(name, unit, better, help)                                                                          \
	text_addf(out, "| `%s` | %s | %s | %s |\n", #name, cell(unit), better_word(better), help);
	TRAIN_FIELDS(X)
#undef X
#define X(name, help) text_addf(out, "| `%s` | text | | %s |\n", #name, help);
	TRAIN_TEXTS(X)
#undef X
}

/* ---- serving ---- */

static void add_serving(struct text *out)
{
	static const char *const types[] = {"counter", "gauge", "histogram"}; /* enum metric_type */

	text_addf(out,
		  "# Serving\n\n"
		  "This page is %s.\n"
		  "The options of `assay serve` are in [Commands](commands.md).\n\n"
		  "## Metrics\n\n"
		  "`GET /metrics` prints these metrics for Prometheus, with the label `model_name`. If the "
		  "third column has a name, the server prints the metric under this name too.\n\n"
		  "| metric | type | name in vLLM | unit | meaning |\n"
		  "|---|---|---|---|---|\n",
		  generated);
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_row *row = metric_row((enum metric)i);

		text_addf(out, "| `%s` | %s | %s%s%s | %s | %s |\n", row->name, types[row->type],
			  row->alias ? "`" : "", cell(row->alias), row->alias ? "`" : "", row->unit,
			  row->help);
	}
	text_add(out,
		 "\n## Results\n\nFigures of a whole run, from its request log. `assay report DIR` shows "
		 "them.\n\n| field | unit | better | meaning |\n|---|---|---|---|\n");
#define X(name, unit, better, help)                                                                          \
	text_addf(out, "| `%s` | %s | %s | %s |\n", #name, cell(unit), better_word(better), help);
	SERVE_FIELDS(X)
#undef X
}

/* ---- commands and probes ---- */

static void add_option_table(struct text *out, const struct opt_table *t, const char *dashes)
{
	char word[HELP_WORD_BYTES];

	if (!t->count)
		return;
	text_add(out, "\n| option | value | default | meaning |\n|---|---|---|---|\n");
	for (size_t i = 0; i < t->count; i++) {
		const struct opt *row = &t->rows[i];

		help_value_word(row, word, sizeof(word));
		text_addf(out, "| `%s%s` | ", row->positional ? "" : dashes, row->name);
		for (const char *p = word; *p; p++) /* a bar would end the table cell */
			text_add_bytes(out, *p == '|' ? " · " : p, *p == '|' ? strlen(" · ") : 1);
		text_addf(out, " | %s | %s |\n", cell(row->preset), cell(row->help));
	}
}

static void add_commands(struct text *out)
{
	text_addf(out, "# Commands\n\nThis page is %s.\n", generated);
	for (const struct command *const *c = command_list; *c; c++) {
		if ((*c)->hidden)
			continue;
		text_addf(out, "\n## assay %s\n\n%s.\n", (*c)->name, (*c)->summary);
		if ((*c)->help)
			text_addf(out, "\n%s\n", (*c)->help);
		if ((*c)->rest)
			text_addf(out, "\nUsage: `assay %s [OPTION...] %s`\n", (*c)->name, (*c)->rest);
		add_option_table(out, &(*c)->opts, "--");
		if ((*c)->example)
			text_addf(out, "\n```\n%s\n```\n", (*c)->example);
	}
}

static void add_probes(struct text *out)
{
	text_addf(out, "# Probes\n\nThis page is %s.\n", generated);
	for (const struct probe *const *p = probe_list; *p; p++) {
		text_addf(out, "\n## %s\n\n%s.\n", (*p)->name, (*p)->summary);
		if ((*p)->kind == PROBE_READING)
			text_addf(
				out,
				"Reads facts of %s and measures nothing; the rules are in `expectations/health.yaml`.\n",
				(*p)->reads == TARGET_GPU ? "each GPU" : "the node");
		for (const struct engine *const *e = (*p)->engines; e && *e; e++) {
			text_addf(out, "%s`%s` ", e == (*p)->engines ? "\nEngines:\n\n- " : "\n- ",
				  (*e)->name);
			help_engine(out, *e);
		}
		text_add(out, (*p)->engines && *(*p)->engines ? "\n" : "");
		add_option_table(out, &(*p)->opts, "");
	}
}

/* ---- counters ---- */

static const char *const counter_sets[] = {
#define X(name) #name,
	COUNTER_SETS(X)
#undef X
};

static void add_counter_metrics(struct text *out, const char *metrics)
{
	while (*metrics) {
		size_t n = strcspn(metrics, "|");

		text_addf(out, "`%.*s`%s", (int)n, metrics, metrics[n] ? " or " : "");
		metrics += n + (metrics[n] == '|');
	}
}

static void add_counters(struct text *out)
{
	text_addf(
		out,
		"# Counters\n\nThis page is %s.\nHardware counters of a GPU with CUPTI's metric names "
		"(docs/explanation/design/counter.md). Sums are per iteration.\n\n## Counters of a range of work\n\n"
		"| counter | set | unit | CUPTI metric | meaning |\n|---|---|---|---|---|\n",
		generated);
	for (unsigned i = 0; i < COUNTER_METRIC_COUNT; i++) {
		const struct counter_row *row = &counter_rows[i];
		unsigned set = 0;

		while (!(row->set & 1u << set))
			set++;
		text_addf(out, "| `%s` | %s | %s | ", row->name, counter_sets[set], row->unit);
		add_counter_metrics(out, row->metric ? row->metric : "");
		text_addf(out, "%s | %s |\n", row->metric ? "" : "by type, below", row->meaning);
	}
	text_add(out, "\nFLOP of the tensor cores, by operand type:\n\n"
		      "| type | CUPTI metric |\n|---|---|\n");
#define X(type, metric)                                                                                      \
	text_add(out, "| " #type " | ");                                                                     \
	add_counter_metrics(out, metric);                                                                    \
	text_add(out, " |\n");
	COUNTER_TENSOR_TYPES(X)
#undef X
	text_add(
		out,
		"\n## Counters sampled over time\n\n| counter | unit | CUPTI metric | meaning |\n|---|---|---|---|\n");
	for (unsigned i = 0; i < COUNTER_SAMPLED_COUNT; i++) {
		const struct counter_row *row = &counter_sampled_rows[i];

		text_addf(out, "| `%s` | %s | `%s` | %s |\n", row->name, row->unit, row->metric,
			  row->meaning);
	}
}

/* ---- vendor functions ---- */

static void add_library(struct text *out, const struct lib_spec *spec)
{
	text_addf(out, "\n## %s\n\nSearched as", spec->name);
	for (const char *const *so = spec->sonames; *so; so++)
		text_addf(out, "%s `%s`", so == spec->sonames ? "" : ",", *so);
	text_add(out, ".\n\n| function | needed |\n|---|---|\n");
	for (size_t i = 0; i < spec->symbol_count; i++)
		text_addf(out, "| `%s` | %s |\n", spec->symbols[i].symbol,
			  spec->symbols[i].need == LIB_NEED_REQUIRED ? "yes" : "no");
}

static void add_vendor(struct text *out)
{
	text_addf(
		out,
		"# Vendor functions\n\nThis page is %s.\nIt lists every function of a foreign library that assay "
		"calls. "
		"Only helper, sampler and worker processes open these libraries, and only at run time.\n",
		generated);
#define X(name) add_library(out, &name##_lib);
	VENDOR_LIBS(X)
#undef X
}

/* ---- metrics ---- */

/* Expressions that cannot be expanded are found by the unit test watch_generate. */
static void add_rules(struct text *out)
{
	generate_rules(out, NULL);
}

static void add_alerts(struct text *out)
{
	generate_alerts(out, NULL);
}

static void add_dashboard(struct text *out, const char *name)
{
	json_t *dashboard = NULL;
	char *dumped;

	if (generate_grafana(&dashboard, name, NULL))
		return;
	dumped = json_dumps(dashboard, JSON_INDENT(1));
	text_addf(out, "%s\n", dumped ? dumped : "");
	free(dumped);
	json_decref(dashboard);
}

#define X(name)                                                                                              \
	static void add_##name##_dashboard(struct text *out)                                                 \
	{                                                                                                    \
		add_dashboard(out, #name);                                                                   \
	}
X(fleet)
X(node)
X(training)
X(serving)
X(cost)
#undef X

/* ---- all of them ---- */

static const struct page {
	const char *path;
	void (*write)(struct text *out);
} pages[] = {
	{"docs/reference/lists.md", add_lists},
	{"docs/reference/fields.md", add_fields},
	{"docs/reference/commands.md", add_commands},
	{"docs/reference/probes.md", add_probes},
	{"docs/reference/counters.md", add_counters},
	{"docs/reference/vendor.md", add_vendor},
	{"docs/reference/training.md", add_training},
	{"docs/reference/serving.md", add_serving},
	{"docs/reference/metrics.md", generate_reference},
	{"examples/monitoring/rules.yaml", add_rules},
	{"examples/monitoring/alerts.yaml", add_alerts},
	{"examples/monitoring/grafana/fleet.json", add_fleet_dashboard},
	{"examples/monitoring/grafana/node.json", add_node_dashboard},
	{"examples/monitoring/grafana/training.json", add_training_dashboard},
	{"examples/monitoring/grafana/serving.json", add_serving_dashboard},
	{"examples/monitoring/grafana/cost.json", add_cost_dashboard},
	{"docs/man/assay.1", docs_manual},
	{"docs/completion/assay.bash", docs_bash},
	{"docs/completion/_assay", docs_zsh},
};

static enum status write_page(const char *root, const struct page *page, struct error *err)
{
	struct text body = {0};
	char path[4096];
	enum status st;

	snprintf(path, sizeof(path), "%s/%s", root, page->path);
	*strrchr(path, '/') = '\0';
	st = file_make_dir(path, err);
	snprintf(path, sizeof(path), "%s/%s", root, page->path);
	page->write(&body);
	if (!st)
		st = file_write(path, text_str(&body), body.size, err);
	text_release(&body);
	return st;
}

static int run(const struct command_context *c, int argc, char **argv)
{
	struct error err = {0};

	if (argc != 1) {
		log_error(c->log, LOG_TOPIC_RUN, "__docs: name the folder to write to");
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (write_page(argv[0], &pages[i], &err)) {
			log_error(c->log, LOG_TOPIC_RUN, "%s", err.text);
			return EXIT_INCONCLUSIVE;
		}
	return EXIT_PASS;
}

const struct command command_docs = {
	.name = "__docs",
	.summary = "write the pages that are generated from the tables",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
