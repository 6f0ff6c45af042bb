/* SPDX-License-Identifier: Apache-2.0 */
/* Each rank writes the facts of its node as the journal of a run without measurements. Rank 0 collects
 * these journals and judges them like those of any run. So missing nodes and differing facts look the same
 * as in a report. */
#include "cmd/info/team.h"
#include <errno.h>
#include <unistd.h>
#include "cmd/info/info.h"
#include "core/file/file.h"
#include "core/json/member.h"
#include "core/text/utf8.h"
#include "journal/journal.h"
#include "report/tables/nodes.h"

enum { PART_MS = 60000 };

static enum status append(struct journal *j, enum journal_type type, json_t *body, struct error *err)
{
	enum status st = body ? journal_append(j, type, body, err)
			      : error_errno(err, ENOMEM, "this node's facts for rank 0");

	json_decref(body);
	return st;
}

static enum status write_journal(const struct info_team *t, const struct machine *m, struct error *err)
{
	const struct team_shape *s = control_shape(t->team.control);
	unsigned rank = t->team.place.rank;
	struct journal *j = NULL;
	enum status st = journal_create(&j, t->dir, false, clock_monotonic(), err);

	if (!st)
		st = append(j, JOURNAL_OPEN,
			    json_pack("{s:i,s:s,s:o}", "schema", JOURNAL_SCHEMA, "program", ASSAY_VERSION,
				      "team", control_team_json(s, rank, false)),
			    err);
	if (!st)
		st = append(j, JOURNAL_MACHINE, json_pack("{s:O}", "facts", machine_json(m)), err);
	if (!st)
		st = append(j, JOURNAL_PLAN,
			    json_pack("{s:s,s:s,s:{},s:[]}", "hash", "", "suite", "info", "fields", "steps"),
			    err);
	if (!st)
		st = append(j, JOURNAL_CLOSE,
			    json_pack("{s:s,s:s,s:o}", "ending", "done", "text", "", "team",
				      control_team_json(s, rank, true)),
			    err);
	journal_close(&j);
	return st;
}

static enum status make_dir(struct info_team *t, struct error *err)
{
	const char *base = getenv("TMPDIR");

	snprintf(t->dir, sizeof(t->dir), "%.3000s/assay-info-XXXXXX", base && *base ? base : "/tmp");
	if (mkdtemp(t->dir))
		return STATUS_OK;
	error_errno(err, errno, "cannot create %s", t->dir);
	*t->dir = '\0';
	return err->status;
}

enum status info_team_gather(struct info_team *t, const struct command_context *c,
			     const struct running_opts *o, const struct machine *m, struct error *err)
{
	struct running_opts opts = *o;
	static const struct judge_site nothing = {NULL, NULL};
	enum status st;

	opts.real_names = true;
	t->team.looks_only = true;
	st = running_team_join(&t->team, c, &opts, m, err);
	if (!st)
		st = control_part(t->team.control, PART_MS, err);
	if (!st)
		st = make_dir(t, err);
	if (!st)
		st = write_journal(t, m, err);
	if (st)
		return st;
	running_team_collect(&t->team, c, t->dir);
	return t->team.place.rank ? STATUS_OK : judged_read(&t->judged, t->dir, NULL, &nothing, true, err);
}

void info_team_release(struct info_team *t)
{
	judged_release(&t->judged);
	if (*t->dir)
		file_remove_tree(t->dir);
	*t->dir = '\0';
	if (t->team.place.rank)
		running_team_await(&t->team);
	running_team_leave(&t->team);
}

bool info_team_whole(const struct info_team *t)
{
	for (size_t i = 0; i < t->judged.record.node_count; i++)
		if (t->judged.record.node[i].state != NODE_WHOLE)
			return false;
	return true;
}

/* Lines for info_columns. */
struct table {
	struct text lines;
	const struct record *record;
	unsigned node;
};

/* Appends one cell to a line. A tab in the text is removed, because the text may come from another
 * machine. */
static void cell(struct text *line, const char *text)
{
	text_add(line, "\t");
	utf8_add_clean(line, text, UTF8_KEEP_NOTHING);
}

/* "8 x NVIDIA H200", one entry per model. */
static void gpus_cell(struct text *line, const json_t *gpus)
{
	size_t all = json_array_size(gpus), alike;

	text_add(line, "\t");
	for (size_t i = 0; i < all; i += alike) {
		const char *name = json_member_text(json_array_get(gpus, i), "name");

		for (alike = 1; i + alike < all; alike++)
			if (strcmp(json_member_text(json_array_get(gpus, i + alike), "name"), name))
				break;
		text_addf(line, "%s%zu x ", i ? ", " : "", alike);
		utf8_add_clean(line, *name ? name : "GPU without a name", UTF8_KEEP_NOTHING);
	}
	if (!all)
		text_add(line, "none");
}

static void facts_cells(struct text *line, const json_t *facts)
{
	const json_t *cpu = json_object_get(facts, "cpu");
	char threads[32], memory[32];

	snprintf(threads, sizeof(threads), "%.0f", info_number(cpu, "threads"));
	cell(line, json_member_text(json_object_get(facts, "system"), "kernel"));
	cell(line, json_member_text(cpu, "model"));
	cell(line, threads);
	cell(line, info_bytes(memory, info_number(json_object_get(facts, "memory"), "total_bytes")));
	gpus_cell(line, json_object_get(facts, "gpus"));
	cell(line, json_member_text(json_object_get(facts, "driver"), "version"));
}

static void node_row(void *arg, enum verdict verdict, const char *const *cells)
{
	struct table *t = arg;
	const json_t *facts = t->record->node[t->node++].machine;

	text_add(&t->lines, verdict == VERDICT_WARN ? "!" : "");
	for (unsigned i = 0; i < 3;
	     i++) /* node, state, ranks; the following facts are described in more detail here */
		cell(&t->lines, cells[i]);
	if (facts)
		facts_cells(&t->lines, facts);
	text_add(&t->lines, "\n");
}

static void difference_row(void *arg, enum verdict verdict, const char *const *cells)
{
	struct table *t = arg;

	text_add(&t->lines, verdict == VERDICT_WARN ? "!" : "");
	for (unsigned i = 0; i < NODES_DIFFERENCE_COLUMNS; i++)
		cell(&t->lines, cells[i]);
	text_add(&t->lines, "\n");
}

enum status info_team_nodes(struct text *out, const struct info_team *t, struct error *err)
{
	struct table table = {.record = &t->judged.record};
	struct view v;
	enum status st = view_build(&v, &t->judged.in, err);

	if (st)
		return st;
	text_addf(out, "Team\n");
	info_row(out, "ranks", "%u on %zu %s, by %s", t->team.place.size, t->judged.record.node_count,
		 t->judged.record.node_count == 1 ? "node" : "nodes", t->team.place.from);
	text_addf(&table.lines, "\t%s\t%s\t%s\tkernel\tCPU\t>threads\t>memory\tGPUs\tdriver\n",
		  nodes_headings[0], nodes_headings[1], nodes_headings[2]);
	nodes_each(&v, node_row, &table);
	info_columns(out, text_str(&table.lines));
	text_release(&table.lines);
	view_release(&v);
	return STATUS_OK;
}

enum status info_team_differences(struct text *out, const struct info_team *t, struct error *err)
{
	struct table table = {.record = &t->judged.record};
	struct view v;
	enum status st = view_build(&v, &t->judged.in, err);

	if (st)
		return st;
	if (t->judged.judgements.difference_count) {
		text_add(out, "Differences between nodes (! = slows or breaks a run on several ranks)\n");
		for (unsigned i = 0; i < NODES_DIFFERENCE_COLUMNS; i++)
			text_addf(&table.lines, "\t%s", nodes_difference_headings(&v)[i]);
		text_add(&table.lines, "\n");
		nodes_each_difference(&v, difference_row, &table);
		info_columns(out, text_str(&table.lines));
	} else {
		text_addf(out, "%s.\n", nodes_alike(&v));
	}
	text_release(&table.lines);
	view_release(&v);
	return STATUS_OK;
}

json_t *info_team_json(const struct info_team *t, struct error *err)
{
	const struct report_style style = {.columns = 100};
	struct text text = {0};
	json_t *report = NULL, *team = NULL;

	if (!report_render(&text, REPORT_JSON, &t->judged.in, &style, err))
		report = json_loads(text_str(&text), 0, NULL);
	team = json_incref(json_object_get(report, "team"));
	if (!team && !err->status)
		error_errno(err, ENOMEM, "the facts of the nodes");
	json_decref(report);
	text_release(&text);
	return team;
}
