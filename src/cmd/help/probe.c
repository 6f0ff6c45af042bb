/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the description of one probe: `assay probe NAME --help`, `assay list probes NAME`. */
#include "cmd/help/help.h"
#include "probe/registry.h"

const struct probe *help_probe_named(const char *name, struct error *err)
{
	const char *known[64], *near;
	size_t count = 0;

	for (const struct probe *const *p = probe_list; *p; p++) {
		if (!strcmp((*p)->name, name))
			return *p;
		if (!(*p)->hidden && count < sizeof(known) / sizeof(known[0]))
			known[count++] = (*p)->name;
	}
	near = opt_nearest(name, known, count);
	error_set(err, STATUS_BAD_INPUT,
		  near ? "there is no probe '%.40s': did you mean '%s'?" : "there is no probe '%.40s'", name,
		  near);
	return NULL;
}

static void add_engines(struct text *out, const struct probe *p)
{
	if (!p->engines || !*p->engines)
		return;
	text_add(out, "\nengines (--engine NAME; default: the first one that this machine supports):\n");
	for (const struct engine *const *e = p->engines; *e; e++)
		text_addf(out, "  %-12s on%s%s%s%s%s\n", (*e)->name, (*e)->targets & TARGET_CPU ? " CPU" : "",
			  (*e)->targets & TARGET_GPU ? " GPU" : "",
			  (*e)->targets & TARGET_PAIR ? " pairs of GPUs" : "",
			  (*e)->libs && *(*e)->libs ? ", with " : "", (*e)->libs ? (*e)->libs : "");
}

static void add_presets(struct text *out, const struct probe *p)
{
	if (!p->presets)
		return;
	text_add(out, "\npresets (--preset NAME):\n");
	for (const struct probe_preset *at = p->presets; at->name; at++) {
		text_addf(out, "  %-12s %s:", at->name, at->summary);
		for (const char *const *option = at->options; *option; option++)
			text_addf(out, " %s", *option);
		text_addf(out, "%s%s%s%s\n", at->engine ? "; --engine " : "", at->engine ? at->engine : "",
			  at->target ? "; --target " : "", at->target ? at->target : "");
	}
}

void help_probe(FILE *to, const struct probe *p)
{
	struct text t = {0};

	text_addf(&t, "assay probe %s: %s\n\nusage: assay probe %s%s [OPTION...]\n", p->name, p->summary,
		  p->name, p->opts.count ? " [name=value[,value..]...]" : "");
	if (p->kind == PROBE_READING)
		text_addf(&t,
			  "\nReads facts of %s and measures nothing; the rules are in "
			  "expectations/health.yaml.\n",
			  p->reads == TARGET_GPU ? "each GPU" : "the node");
	if (p->opts.count) {
		text_add(&t, "\n");
		help_options(&t, &p->opts, HELP_PROBE);
	}
	add_engines(&t, p);
	add_presets(&t, p);
	text_add(&t, "\nOptions common to all probes (--target, --seconds, --out, ..): assay probe --help\n");
	fputs(text_str(&t), to);
	text_release(&t);
}
