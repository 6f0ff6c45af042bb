/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/profile/files.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include "core/file/file.h"
#include "judge/bound/bound.h"
#include "profile/trace/trace.h"

/* The first error, over all files. */
struct writing {
	const struct profile_files *f;
	struct error *err;
	enum status st;
};

static void note_error(struct writing *w, enum status st, const struct error *why)
{
	if (!w->st && st) {
		w->st = st;
		*w->err = *why;
	}
}

static void write_text(struct writing *w, const char *name, struct text *text)
{
	struct error why = {0};
	char path[PATH_MAX + 32];
	enum status st;

	snprintf(path, sizeof(path), "%s/%s", w->f->dir, name);
	st = text->failed ? error_errno(&why, ENOMEM, "%s", name)
			  : file_write(path, text_str(text), text->size, &why);
	note_error(w, st, &why);
	text_release(text);
}

static void write_json(struct writing *w)
{
	json_t *all = findings_json(w->f->page.f);
	char *dumped = all ? json_dumps(all, JSON_INDENT(1)) : NULL;
	struct text text = {.failed = !dumped};

	text_add(&text, dumped ? dumped : "");
	text_add(&text, "\n");
	write_text(w, "summary.json", &text);
	free(dumped);
	json_decref(all);
}

static void write_trace(struct writing *w, const char *path, uint16_t process)
{
	struct error why = {0};

	note_error(w, trace_write(path, w->f->page.f->t, process, w->f->series, w->f->series_count, &why),
		   &why);
}

/* Holistic Trace Analysis needs one file per rank. */
static void write_traces(struct writing *w)
{
	const struct timeline *t = w->f->page.f->t;
	struct error why = {0};
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/" TRACE_FILE, w->f->dir);
	write_trace(w, path, TRACE_ALL);
	for (size_t i = 0; !w->st && t->processes > 1 && i < t->processes; i++) {
		if (t->process[i].rank < 0 || !t->process[i].events)
			continue;
		snprintf(path, sizeof(path), "%s/ranks", w->f->dir);
		note_error(w, file_make_dir(path, &why), &why);
		snprintf(path, sizeof(path), "%s/ranks/rank-%d-pid-%u.json.gz", w->f->dir, t->process[i].rank,
			 t->process[i].pid);
		write_trace(w, path, (uint16_t)i);
	}
}

enum status profile_files_write(const struct profile_files *f, struct error *err)
{
	static const struct {
		const char *name;
		void (*fill)(struct text *out, const struct findings *found);
	} tables[] = {{"nccl.csv", findings_nccl_csv},
		      {"breakdown.csv", findings_breakdown_csv},
		      {"copies.csv", findings_copies_csv},
		      {"counters.csv", findings_counters_csv},
		      {"counters_launches.csv", findings_launches_csv}};
	struct writing w = {.f = f, .err = err};
	struct text text = {0};

	page_markdown(&text, &f->page);
	write_text(&w, "PROFILE.md", &text);
	page_html(&text, &f->page);
	write_text(&w, "PROFILE.html", &text);
	summary_csv(&text, &f->page.f->whole.summary, f->page.f->t);
	write_text(&w, "summary.csv", &text);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		tables[i].fill(&text, f->page.f);
		write_text(&w, tables[i].name, &text);
	}
	write_json(&w);
	if (f->page.trace)
		write_traces(&w);
	return w.st;
}

/* Peak rates of the tensor cores by type, with the names that a roofline uses. */
static void add_compute(struct findings_bounds *b, const struct expectations *e, const struct gpu *g)
{
	static const struct {
		const char *type, *name;
	} types[] = {{"tf32", "TF32"}, {"bf16", "BF16"}, {"fp8", "FP8"}};
	struct subject s = {.gpu = g, .sku = expect_sku(e, g)};
	size_t count = 0;

	s.flops = s.sku ? s.sku : expect_arch(e, (int)gpu_get(g, GPU_FACT_cc, 0));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct bound bound = {0};

		s.type = types[i].type;
		bound_compute(&s, &bound);
		if (bound.value <= 0)
			continue;
		b->compute[count].name = types[i].name;
		b->compute[count++].rate = bound.value;
	}
}

struct findings_bounds profile_files_bounds(const struct machine *m)
{
	struct findings_bounds b = {0};
	struct expectations *e = NULL;
	double rate;

	for (unsigned i = 0; m && i < machine_gpu_count(m); i++) {
		rate = bound_pcie_one_way(machine_gpu(m, i));
		b.link_rate = rate > b.link_rate ? rate : b.link_rate;
	}
	if (m && machine_gpu_count(m) && !expectations_load(&e, NULL, NULL))
		add_compute(&b, e, machine_gpu(m, 0));
	expectations_free(e);
	return b;
}

/* The profiled program's words from the record, separated by blanks. */
static void command_of(struct text *out, const struct record *r)
{
	const json_t *words = json_object_get(r->open, "command"), *word;
	bool behind = false;
	size_t i;

	json_array_foreach(words, i, word)
	{
		const char *text = json_string_value(word);

		if (behind && text)
			text_addf(out, "%s%s", out->size ? " " : "", text);
		behind |= text && !strcmp(text, "--");
	}
}

/* True if the directory has a trace, or the uncompressed one of an older assay version. */
static bool has_trace(const char *dir)
{
	static const char *const names[] = {TRACE_FILE, "trace.json"};
	char path[PATH_MAX + 32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (!access(path, F_OK))
			return true;
	}
	return false;
}

static enum status write_again(const struct record *r, const struct timeline *t,
			       const struct findings_bounds *bounds, const char *note, struct error *err)
{
	const struct record_case *c = r->case_count ? &r->cases[0] : NULL;
	struct findings found;
	struct text command = {0};
	struct profile_files f = {.dir = r->dir, .series = r->series, .series_count = r->series_count};
	enum status st = findings_of(&found, t, bounds, err);

	if (st)
		return st;
	command_of(&command, r);
	f.page = (struct page){.f = &found,
			       .command = text_str(&command),
			       .ending = c && *c->text ? c->text : "an ending that was not recorded",
			       .note = note};
	if (c)
		(void)record_number(record_phase(c, "once"), "wall_s", &f.page.wall_s);
	f.page.trace = has_trace(r->dir);
	st = profile_files_write(&f, err);
	findings_release(&found);
	text_release(&command);
	return st;
}

enum status profile_files_rewrite(const struct record *r, const struct machine *m, struct error *err)
{
	struct timeline t;
	struct text note = {0};
	char rings[PATH_MAX + 32];
	struct findings_bounds bounds;
	enum status st;

	snprintf(rings, sizeof(rings), "%s/rings", r->dir);
	if (access(rings, F_OK))
		return STATUS_OK;
	st = timeline_read(&t, rings, 0, &note, err);
	if (!st) {
		bounds = profile_files_bounds(m);
		st = write_again(r, &t, &bounds, text_str(&note), err);
		timeline_release(&t);
	}
	text_release(&note);
	return st;
}
