/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/help/help.h"

enum { COLUMNS = 100, HELP_COLUMN = 36 };

static void print(FILE *to, struct text *t)
{
	fputs(text_str(t), to);
	text_release(t);
}

static const char *unit_word(const char *unit)
{
	if (!unit || !*unit)
		return "N";
	return !strcmp(unit, "B") ? "BYTES" : !strcmp(unit, "s") ? "SECONDS" : unit;
}

void help_value_word(const struct opt *row, char *out, size_t size)
{
	struct text t = {0};

	if (row->choices)
		for (const char *const *c = row->choices; *c; c++)
			text_addf(&t, "%s%s", c == row->choices ? "" : "|", *c);
	else if (row->shown)
		text_add(&t, row->shown);
	else if (row->kind == OPT_KIND_BOOL)
		text_add(&t, "");
	else if (row->kind == OPT_KIND_TEXT)
		text_add(&t, "TEXT");
	else
		text_add(&t, unit_word(row->unit));
	text_copy(out, size, text_str(&t));
	text_release(&t);
}

static void left_column(const struct opt *row, const char *word, enum help_style style, char *out,
			size_t size)
{
	if (style == HELP_PROBE)
		snprintf(out, size, "  %s=%s", row->name, *word ? word : "true|false");
	else if (row->positional)
		snprintf(out, size, "  %s%s", row->shown ? row->shown : row->name, row->many ? "..." : "");
	else if (row->letter)
		snprintf(out, size, "  -%c, --%s%s%s", row->letter, row->name, *word ? " " : "", word);
	else
		snprintf(out, size, "      --%s%s%s", row->name, *word ? " " : "", word);
}

/* Appends `s` in lines of at most COLUMNS characters. The first line begins at `column`, the others at
 * `indent`. */
static void add_wrapped(struct text *out, const char *s, size_t column, size_t indent)
{
	while (*s) {
		size_t n = strcspn(s, " \n");

		if (column > indent && column + n > COLUMNS) {
			text_addf(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		text_add_bytes(out, s, n);
		column += n;
		s += n;
		for (; *s == ' '; s++, column++)
			if (column > indent && column + 1 + strcspn(s + 1, " \n") <= COLUMNS)
				text_add(out, " ");
		for (; *s == '\n'; s++, column = indent)
			text_addf(out, "\n%*s", (int)indent, "");
	}
}

static void add_option(struct text *out, const struct opt *row, enum help_style style)
{
	char word[HELP_WORD_BYTES], left[HELP_WORD_BYTES + 80];
	struct text help = {0};

	help_value_word(row, word, sizeof(word));
	left_column(row, word, style, left, sizeof(left));
	if (strlen(left) > HELP_COLUMN - 2)
		text_addf(out, "%s\n%*s", left, HELP_COLUMN, "");
	else
		text_addf(out, "%-*s", HELP_COLUMN, left);
	text_add(&help, row->help ? row->help : "");
	if (style == HELP_COMMAND && row->positional && row->choices)
		text_addf(&help, ": %s", word);
	if (row->preset && *row->preset && row->kind != OPT_KIND_BOOL)
		text_addf(&help, " (default %s)", row->preset);
	else if (style == HELP_COMMAND && row->preset && !strcmp(row->preset, "true"))
		text_addf(&help, " (default on; --no-%s turns it off)", row->name);
	add_wrapped(out, text_str(&help), HELP_COLUMN, HELP_COLUMN);
	text_release(&help);
	text_add(out, "\n");
}

void help_options(struct text *out, const struct opt_table *t, enum help_style style)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].positional)
			add_option(out, &t->rows[i], style);
	for (size_t i = 0; i < t->count; i++)
		if (!t->rows[i].positional)
			add_option(out, &t->rows[i], style);
}

void help_overview(FILE *to)
{
	struct text t = {0};

	text_add(
		&t,
		"assay checks the health and the speed of GPU machines. If a figure is below the hardware's limit,\n"
		"it explains why and names the setting to change. It also fine-tunes language models, serves them,\n"
		"load-tests servers and profiles CUDA programs.\n\n"
		"usage: assay COMMAND [OPTION...]\n\n"
		"First steps:\n"
		"  assay check quick    check this machine, with or without GPUs; takes about a minute\n"
		"  assay demo quick     a guided tour of check, training and serving\n\n"
		"Commands:\n");
	for (const struct command *const *c = command_list; *c; c++)
		if (!(*c)->hidden)
			text_addf(&t, "  %-13s %s\n", (*c)->name, (*c)->summary);
	text_add(
		&t,
		"\n`assay COMMAND --help` shows a command's options and an example.\n"
		"Options of every command: --quiet, --debug=TOPIC,.. (run, timing, vendor, machine, judge, all).\n"
		"Exit codes: 0 all requirements are met, 1 something failed, 2 inconclusive, 64 wrong "
		"usage.\n");
	print(to, &t);
}

void help_command(FILE *to, const struct command *cmd)
{
	struct text t = {0};

	text_addf(&t, "assay %s: %s\n\nusage: assay %s", cmd->name, cmd->summary, cmd->name);
	for (size_t i = 0; i < cmd->opts.count; i++)
		if (cmd->opts.rows[i].positional)
			text_addf(&t, " [%s%s]",
				  cmd->opts.rows[i].shown ? cmd->opts.rows[i].shown : cmd->opts.rows[i].name,
				  cmd->opts.rows[i].many ? "..." : "");
	text_addf(&t, " [OPTION...]%s%s\n", cmd->rest ? " " : "", cmd->rest ? cmd->rest : "");
	if (cmd->help) {
		text_add(&t, "\n");
		add_wrapped(&t, cmd->help, 0, 0);
		text_add(&t, "\n");
	}
	if (cmd->opts.count) {
		text_add(&t, "\n");
		help_options(&t, &cmd->opts, HELP_COMMAND);
	}
	if (cmd->example)
		text_addf(&t, "\nexample:\n  %s\n", cmd->example);
	print(to, &t);
}

void help_unknown_command(const char *name, struct error *err)
{
	const char *known[64];
	const char *near;
	size_t count = 0;

	for (const struct command *const *c = command_list; *c && count < 64; c++)
		if (!(*c)->hidden)
			known[count++] = (*c)->name;
	near = opt_nearest(name, known, count);
	if (near)
		error_set(err, STATUS_BAD_INPUT, "unknown command '%s': did you mean '%s'?", name, near);
	else
		error_set(err, STATUS_BAD_INPUT, "unknown command '%s'", name);
}

enum status help_debug_topics(const char *list, unsigned *topics, struct error *err)
{
	char word[32];

	while (*list) {
		size_t n = strcspn(list, ",");
		enum log_topic topic;

		if (n >= sizeof(word))
			return error_set(err, STATUS_BAD_INPUT, "--debug: unknown topic '%.40s'", list);
		memcpy(word, list, n);
		word[n] = '\0';
		if (!strcmp(word, "all"))
			*topics = (1u << LOG_TOPIC_COUNT) - 1;
		else if (log_topic_from_name(word, &topic))
			*topics |= 1u << topic;
		else
			return error_set(
				err, STATUS_BAD_INPUT,
				"--debug: unknown topic '%s' (run, timing, vendor, machine, judge, all)",
				word);
		list += n + (list[n] == ',');
	}
	return STATUS_OK;
}
