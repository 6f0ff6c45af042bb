/* SPDX-License-Identifier: Apache-2.0 */
/* Prints shell completions for bash and zsh: commands, options, probes, and the values of options. */
#include "cmd/help/docs.h"
#include "probe/registry.h"
#include "run/suite/suite.h"

/* ---- bash ---- */

static void add_words(struct text *out, const char *const *words)
{
	for (const char *const *w = words; *w; w++)
		text_addf(out, "%s%s", w == words ? "" : " ", *w);
}

/* Names of the built-in suites, each with a blank before it. */
static void add_suites(struct text *out)
{
	char names[SUITES_BUILTIN][SUITE_NAME];
	size_t count = suite_builtin_names(names, SUITES_BUILTIN);

	for (size_t i = 0; i < count; i++)
		text_addf(out, " %s", names[i]);
}

/* The lower-case words of an option's "shown" text, such as "cpu|gpu|team". */
static void add_shown_words(struct text *out, const char *shown)
{
	while (*shown) {
		size_t size = strcspn(shown, "|");

		if (strspn(shown, "abcdefghijklmnopqrstuvwxyz-") >= size)
			text_addf(out, " %.*s", (int)size, shown);
		shown += size + (shown[size] == '|');
	}
}

/* One case arm per option with a list of values: "check:--format) words='text json' ;;". */
static void bash_values(struct text *out, const char *subject, const char *dashes, const struct opt_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		if (!t->rows[i].positional && !strcmp(t->rows[i].name, "target") && t->rows[i].shown) {
			text_addf(out, "\t%s:%s%s) words='", subject, dashes, t->rows[i].name);
			add_shown_words(out, t->rows[i].shown);
			text_add(out, "' ;;\n");
		}
		if (!t->rows[i].positional && !strcmp(t->rows[i].name, "suite")) {
			text_addf(out, "\t%s:%s%s) words='", subject, dashes, t->rows[i].name);
			add_suites(out);
			text_add(out, "' ;;\n");
		}
		if (!t->rows[i].choices || t->rows[i].positional)
			continue;
		text_addf(out, "\t%s:%s%s) words='", subject, dashes, t->rows[i].name);
		add_words(out, t->rows[i].choices);
		text_add(out, "' ;;\n");
	}
}

static void bash_options(struct text *out, const struct command *c)
{
	text_addf(out, "\t%s) words='--help", c->name);
	for (size_t i = 0; i < c->opts.count; i++) {
		const struct opt *row = &c->opts.rows[i];

		if (!row->positional) {
			text_addf(out, " --%s", row->name);
		} else if (row->choices) {
			text_add(out, " ");
			add_words(out, row->choices);
		} else if (!strcmp(c->name, "check")) {
			add_suites(out);
		}
	}
	text_add(out, "' ;;\n");
}

static void bash_commands(struct text *out)
{
	for (const struct command *const *c = command_list; *c; c++)
		if (!(*c)->hidden)
			text_addf(out, "%s ", (*c)->name);
}

static void bash_probes(struct text *out)
{
	text_add(out,
		 "\tif [ \"${COMP_WORDS[1]}\" = probe ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n\t\twords='");
	for (const struct probe *const *p = probe_list; *p; p++)
		if (!(*p)->hidden)
			text_addf(out, "%s%s", p == probe_list ? "" : " ", (*p)->name);
	text_add(out,
		 " --help'\n\telif [ \"${COMP_WORDS[1]}\" = probe ]; then\n\t\tcase ${COMP_WORDS[2]} in\n");
	for (const struct probe *const *p = probe_list; *p; p++) {
		if ((*p)->hidden || !(*p)->opts.count)
			continue;
		text_addf(out, "\t\t%s) words=\"$words", (*p)->name);
		for (size_t i = 0; i < (*p)->opts.count; i++)
			text_addf(out, " %s=", (*p)->opts.rows[i].name);
		text_add(out, "\" ;;\n");
	}
	text_add(out, "\t\tesac\n\tfi\n");
}

void docs_bash(struct text *out)
{
	text_add(out, "# bash completion for assay; printed by the program from its tables\n"
		      "_assay_words()\n{\n\tCOMPREPLY=($(compgen -W \"$1\" -- \"$2\"))\n"
		      "\t[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2> /dev/null\n}\n"
		      "_assay()\n{\n"
		      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words= key=\n"
		      "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\t_assay_words '");
	bash_commands(out);
	text_add(out, "help --help --version' \"$cur\"\n\t\treturn\n\tfi\n"
		      "\tif [ \"${COMP_WORDS[1]}\" = help ]; then\n\t\t_assay_words '");
	bash_commands(out);
	text_add(out, "' \"$cur\"\n\t\treturn\n\tfi\n"
		      "\t# the words after -- are a program, or the command that ranks run\n"
		      "\tcase \"${COMP_WORDS[1]} $prev\" in\n"
		      "\t'launch --') _assay_words 'check probe' \"$cur\"; return ;;\n"
		      "\t'profile --') COMPREPLY=($(compgen -c -- \"$cur\")); return ;;\n"
		      "\tesac\n"
		      "\t# the shell splits name=value at the sign\n"
		      "\tif [ \"$cur\" = = ]; then cur= key=$prev\n"
		      "\telif [ \"$prev\" = = ]; then key=${COMP_WORDS[COMP_CWORD - 2]}\n"
		      "\telse case $prev in --*) key=$prev ;; esac\n\tfi\n"
		      "\tcase ${COMP_WORDS[1]}:$key in\n");
	for (const struct command *const *c = command_list; *c; c++)
		if (!(*c)->hidden)
			bash_values(out, (*c)->name, "--", &(*c)->opts);
	text_add(out, "\tesac\n\tcase ${COMP_WORDS[1]}:${COMP_WORDS[2]}:$key in\n");
	for (const struct probe *const *p = probe_list; *p; p++) {
		char subject[80];

		snprintf(subject, sizeof(subject), "probe:%s", (*p)->name);
		if (!(*p)->hidden)
			bash_values(out, subject, "", &(*p)->opts);
	}
	text_add(out, "\tesac\n\tif [ -n \"$words\" ]; then _assay_words \"$words\" \"$cur\"; return; fi\n"
		      "\tcase ${COMP_WORDS[1]} in\n");
	for (const struct command *const *c = command_list; *c; c++)
		if (!(*c)->hidden)
			bash_options(out, *c);
	text_add(out, "\tesac\n");
	bash_probes(out);
	text_add(out, "\t_assay_words \"$words\" \"$cur\"\n"
		      "\tcase ${COMP_WORDS[1]}:$cur in # a word that is no option may be a file\n"
		      "\t*:-*) ;;\n"
		      "\tprobe:* | list:* | info:* | top:*) ;;\n"
		      "\t*) COMPREPLY+=($(compgen -f -- \"$cur\")) ;;\n"
		      "\tesac\n"
		      "}\ncomplete -F _assay assay\n");
}

/* ---- zsh ---- */

/* Removes characters that would end a description in zsh: colon, quote and bracket. */
static void add_zsh_text(struct text *out, const char *s)
{
	for (; s && *s; s++)
		text_add_bytes(out, strchr("[]:'\"`$\\", *s) ? " " : s, 1);
}

static void zsh_option(struct text *out, const struct opt *row)
{
	text_addf(out, " \\\n\t\t\t'--%s%s[", row->name, row->kind == OPT_KIND_BOOL ? "" : "=");
	add_zsh_text(out, row->help);
	text_add(out, "]");
	if (row->choices) {
		text_addf(out, ":%s:(", row->name);
		add_words(out, row->choices);
		text_add(out, ")");
	} else if (row->kind != OPT_KIND_BOOL) {
		text_addf(out, ":%s:%s", row->name, row->kind == OPT_KIND_TEXT ? "_files" : "");
	}
	text_add(out, "'");
}

/* The positional words that a command accepts: its list of words, the probes, or files. */
static void zsh_positional(struct text *out, const struct command *c)
{
	const struct opt *first = NULL;

	for (size_t i = 0; i < c->opts.count && !first; i++)
		if (c->opts.rows[i].positional)
			first = &c->opts.rows[i];
	if (!strcmp(c->name, "probe")) {
		text_add(out, " \\\n\t\t\t'2:probe:(");
		for (const struct probe *const *p = probe_list; *p; p++)
			if (!(*p)->hidden)
				text_addf(out, "%s%s", p == probe_list ? "" : " ", (*p)->name);
		text_add(out, ")' \\\n\t\t\t'*:option:_assay_probe_options' ;;\n");
	} else if (first && first->choices) {
		text_addf(out, " \\\n\t\t\t'2:%s:(", first->name);
		add_words(out, first->choices);
		text_add(out, ")' '*:file:_files' ;;\n");
	} else {
		text_add(out, " '*:file:_files' ;;\n");
	}
}

static void zsh_probe_options(struct text *out)
{
	text_add(out, "_assay_probe_options() {\n\tcase $words[3] in\n");
	for (const struct probe *const *p = probe_list; *p; p++) {
		if ((*p)->hidden || !(*p)->opts.count)
			continue;
		text_addf(out, "\t%s) _values -w option", (*p)->name);
		for (size_t i = 0; i < (*p)->opts.count; i++) {
			const struct opt *row = &(*p)->opts.rows[i];

			text_addf(out, " \\\n\t\t'%s[", row->name);
			add_zsh_text(out, row->help);
			text_addf(out, "]:%s:", row->name);
			if (row->choices) {
				text_add(out, "(");
				add_words(out, row->choices);
				text_add(out, ")");
			}
			text_add(out, "'");
		}
		text_add(out, " ;;\n");
	}
	text_add(out, "\tesac\n}\n");
}

void docs_zsh(struct text *out)
{
	text_add(out, "#compdef assay\n# printed by the program from its tables\n");
	zsh_probe_options(out);
	text_add(out, "_assay() {\n\tlocal -a commands\n\tcommands=(\n");
	for (const struct command *const *c = command_list; *c; c++) {
		if ((*c)->hidden)
			continue;
		text_addf(out, "\t\t'%s:", (*c)->name);
		add_zsh_text(out, (*c)->summary);
		text_add(out, "'\n");
	}
	text_add(out, "\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command "
		      "commands\n\t\treturn\n\tfi\n\tcase $words[2] in\n");
	for (const struct command *const *c = command_list; *c; c++) {
		if ((*c)->hidden)
			continue;
		text_addf(out, "\t%s)\n\t\t_arguments '--help[help]' '1: :'", (*c)->name);
		for (size_t i = 0; i < (*c)->opts.count; i++)
			if (!(*c)->opts.rows[i].positional)
				zsh_option(out, &(*c)->opts.rows[i]);
		zsh_positional(out, *c);
	}
	text_add(out, "\tesac\n}\n_assay \"$@\"\n");
}
