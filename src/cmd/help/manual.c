/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the manual page. */
#include "cmd/help/docs.h"
#include "cmd/help/help.h"
#include "probe/registry.h"

/* Escapes text for roff, where a backslash, a minus, and a dot or quote at the beginning are special. */
static void add_roff(struct text *out, const char *s)
{
	if (*s == '.' || *s == '\'')
		text_add(out, "\\&");
	for (; *s; s++) {
		if (*s == '\\')
			text_add(out, "\\e");
		else if (*s == '-')
			text_add(out, "\\-");
		else if (!strncmp(s, "\n\n", 2))
			text_add(out, "\n.PP\n"), s++;
		else
			text_add_bytes(out, s, 1);
	}
}

static void add_manual_option(struct text *out, const struct opt *row, enum help_style style)
{
	char word[HELP_WORD_BYTES];

	help_value_word(row, word, sizeof(word));
	text_add(out, ".TP\n.B ");
	if (style == HELP_PROBE) {
		text_addf(out, "%s=", row->name);
		add_roff(out, *word ? word : "true|false");
	} else if (row->positional) {
		add_roff(out, row->shown ? row->shown : row->name);
	} else {
		text_add(out, "\\-\\-");
		add_roff(out, row->name);
		text_add(out, *word ? " " : "");
		add_roff(out, word);
	}
	text_add(out, "\n");
	add_roff(out, row->help ? row->help : "");
	if (row->preset && *row->preset && row->kind != OPT_KIND_BOOL) {
		text_add(out, " (default ");
		add_roff(out, row->preset);
		text_add(out, ")");
	}
	text_add(out, "\n");
}

static void add_manual_options(struct text *out, const struct opt_table *t, enum help_style style)
{
	for (size_t i = 0; i < t->count; i++)
		add_manual_option(out, &t->rows[i], style);
}

static void add_manual_probes(struct text *out)
{
	text_add(out, ".SH PROBES\n");
	for (const struct probe *const *p = probe_list; *p; p++) {
		if ((*p)->hidden)
			continue;
		text_addf(out, ".SS %s\n", (*p)->name);
		add_roff(out, (*p)->summary);
		text_add(out, ".\n");
		add_manual_options(out, &(*p)->opts, HELP_PROBE);
	}
}

void docs_manual(struct text *out)
{
	text_add(out, ".\\\" generated from the program's tables\n.TH ASSAY 1 \"\" \"assay " ASSAY_VERSION
		      "\" \"User Commands\"\n.SH NAME\nassay \\- prove, explain and use GPU machines\n"
		      ".SH SYNOPSIS\n.B assay\nCOMMAND [OPTION...]\n.SH COMMANDS\n");
	for (const struct command *const *c = command_list; *c; c++) {
		if ((*c)->hidden)
			continue;
		text_addf(out, ".SS assay %s\n", (*c)->name);
		add_roff(out, (*c)->summary);
		text_add(out, ".\n");
		if ((*c)->help) {
			text_add(out, ".PP\n");
			add_roff(out, (*c)->help);
			text_add(out, "\n");
		}
		if ((*c)->rest) {
			text_addf(out, ".PP\nUsage: assay %s [OPTION...] ", (*c)->name);
			add_roff(out, (*c)->rest);
			text_add(out, "\n");
		}
		add_manual_options(out, &(*c)->opts, HELP_COMMAND);
		if ((*c)->example) {
			text_add(out, ".PP\nExample:\n.PP\n.nf\n    ");
			add_roff(out, (*c)->example);
			text_add(out, "\n.fi\n");
		}
	}
	add_manual_probes(out);
	text_add(out,
		 ".SH EXIT STATUS\n.TP\n.B 0\nall requirements are met\n.TP\n.B 1\nsomething failed\n"
		 ".TP\n.B 2\ninconclusive: something required could not be judged\n.TP\n.B 64\nwrong usage\n"
		 ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colours\n.TP\n.B ASSAY_LIB_NAME\npath of the library "
		 "NAME\n");
}
