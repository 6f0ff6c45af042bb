/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/record/job_ranks.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "core/text/text.h"
#include "journal/file/rank_dir.h"
#include "journal/record/merge.h"

enum { RANKS_MOST = 65536 };

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static bool same(const json_t *a, const json_t *b, const char *name)
{
	return !strcmp(text_of(a, name), text_of(b, name));
}

/* The job's case in the journal of one rank; NULL: none. */
static const struct record_case *job_case(const struct record *r, const char *probe)
{
	for (size_t i = 0; i < r->case_count; i++)
		if (r->cases[i].job && !strcmp(r->cases[i].probe, probe))
			return &r->cases[i];
	return NULL;
}

/* Why the journal is not of this job's last attempt; NULL: it is. A folder of an earlier attempt stays when a
 * resumed run has its ranks on other nodes. */
static const char *foreign(const struct record *r, const struct record_case *own, const struct record *sub,
			   const struct record_case *c)
{
	double here = 0, there = 0;

	if (!c || !sub->open || !same(r->open, sub->open, "program") || !same(r->open, sub->open, "build") ||
	    !same(r->plan, sub->plan, "hash"))
		return "its journal is of another run";
	if (!record_phase(c, "once"))
		return "its journal ends early";
	if (record_number(record_phase(own, "once"), "steps", &here) !=
		    record_number(record_phase(c, "once"), "steps", &there) ||
	    here != there)
		return "its journal is of an earlier attempt";
	return NULL;
}

/* Takes the journal of this rank below the node's folder, if that has one. A good journal stays. */
static enum status try_node(struct job_rank *out, const struct record *r, const struct record_case *own,
			    const char *node, unsigned rank, struct error *err)
{
	char dir[PATH_MAX];
	struct error why = {0};
	const struct record_case *c;
	struct record sub;
	const char *bad;
	enum status st;

	rank_dir_path(dir, sizeof(dir), r->dir, node, rank);
	st = record_read_alone(&sub, dir, &why);
	if (st == STATUS_UNAVAILABLE) {
		record_release(&sub);
		return STATUS_OK;
	}
	c = st ? NULL : job_case(&sub, own->probe);
	bad = st ? "its journal cannot be read" : foreign(r, own, &sub, c);
	snprintf(out->name, sizeof(out->name), "rank %u on %.60s", rank, node);
	text_copy(out->why, sizeof(out->why), bad ? bad : "");
	if (!bad) {
		out->record = sub; /* the cases stay where they are */
		out->c = c;
		return STATUS_OK;
	}
	record_release(&sub);
	return st == STATUS_NO_RESOURCE ? error_set_cause(err, st, why.cause, "%s", why.text) : STATUS_OK;
}

static enum status read_rank(struct job_rank *out, const struct record *r, const struct record_case *own,
			     unsigned rank, struct error *err)
{
	char dir[PATH_MAX + sizeof(NODES_DIR) + 1];
	enum status st = STATUS_OK;
	DIR *nodes;

	snprintf(out->name, sizeof(out->name), "rank %u", rank);
	text_copy(out->why, sizeof(out->why), "its journal is not in the run directory");
	snprintf(dir, sizeof(dir), "%s/" NODES_DIR, r->dir);
	nodes = opendir(dir);
	for (struct dirent *e; nodes && !st && !out->c && (e = readdir(nodes));)
		if (*e->d_name != '.')
			st = try_node(out, r, own, e->d_name, rank, err);
	if (nodes)
		closedir(nodes);
	return st;
}

enum status job_ranks_read(struct job_ranks *out, const struct record *r, const struct record_case *c,
			   struct error *err)
{
	double ranks = 1;
	enum status st = STATUS_OK;

	*out = (struct job_ranks){0};
	if (!record_number(record_phase(c, "once"), "ranks", &ranks) || !(ranks >= 2) || ranks > RANKS_MOST)
		return STATUS_OK;
	out->rank = calloc((size_t)ranks - 1, sizeof(*out->rank));
	if (!out->rank)
		return error_errno(err, ENOMEM, "%s: reading the journals of its ranks", r->dir);
	out->count = (unsigned)ranks - 1;
	for (unsigned i = 0; i < out->count && !st; i++)
		st = read_rank(&out->rank[i], r, c, i + 1, err);
	return st;
}

void job_ranks_release(struct job_ranks *j)
{
	for (unsigned i = 0; i < j->count; i++)
		record_release(&j->rank[i].record);
	free(j->rank);
	*j = (struct job_ranks){0};
}
