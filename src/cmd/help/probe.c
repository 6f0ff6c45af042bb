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

void help_engine(struct text *out, const struct engine *e)
{
	static const struct {
		unsigned targets;
		const char *name;
	} rows[] = {{TARGET_CPU, "CPU"},
		    {TARGET_GPU, "GPU"},
		    {TARGET_PAIR, "pairs of GPUs"},
		    {TARGET_NODE | TARGET_TEAM, "groups of GPUs or ranks"}};
	size_t shown = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (e->targets & rows[i].targets)
			text_addf(out, "%s%s", shown++ ? ", " : "on ", rows[i].name);
	if (e->libs && *e->libs)
		text_addf(out, "; needs %s", e->libs);
}

static void add_engines(struct text *out, const struct probe *p)
{
	if (!p->engines || !*p->engines)
		return;
	text_add(out, "\nengines (--engine NAME; default: the first one that this machine supports):\n");
	for (const struct engine *const *e = p->engines; *e; e++) {
		text_addf(out, "  %-12s ", (*e)->name);
		help_engine(out, *e);
		text_add(out, "\n");
	}
}

/* A command line with the defaults of the probe's first two options. */
static void add_example(struct text *out, const struct probe *p)
{
	size_t shown = 0;

	text_addf(out, "\nexample:\n  assay probe %s", p->name);
	for (size_t i = 0; i < p->opts.count && shown < 2; i++)
		if (p->opts.rows[i].preset && *p->opts.rows[i].preset) {
			text_addf(out, " %s=%s", p->opts.rows[i].name, p->opts.rows[i].preset);
			shown++;
		}
	text_add(out, "\n");
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
	add_example(&t, p);
	text_add(&t, "\nOptions common to all probes (--target, --seconds, --out, ..): assay probe --help\n");
	fputs(text_str(&t), to);
	text_release(&t);
}
