/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the expectation set: every .yaml file below expectations/, embedded or from a folder, sorted by name.
 * The hash covers each file's name, size and bytes, so it identifies exactly the set that judged a run. */
#include "judge/expect/expect.h"
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include "core/file/embedded.h"
#include "core/file/file.h"
#include "core/text/text.h"

enum { FILE_MAX = 4 << 20 };

static const struct {
	const char *key;
	enum status (*read)(struct expectations *e, const struct tree *list, const struct tree *sources,
			    struct error *err);
} sections[] = {
	{"skus", expect_read_skus},	     {"bands", expect_read_bands},
	{"ceilings", expect_read_ceilings},  {"shares", expect_read_shares},
	{"unknown", expect_read_unknowns},   {"rules", expect_read_rules},
	{"decisive", expect_read_decisives}, {"xids", expect_read_xids},
	{"operator", expect_read_operator},
};

static enum status sources_check(const struct tree *sources, struct error *err)
{
	static const char *const keys[] = {"title", "date", NULL};
	enum status status = STATUS_OK;
	size_t i;

	if (!sources)
		return STATUS_OK;
	if (sources->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: sources must be a map", sources->file,
				 sources->line);
	for (i = 0; i < sources->count && !status; i++) {
		if (sources->items[i]->kind != TREE_MAP)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s:%d: a source must be a map with title and date", sources->file,
					 sources->items[i]->line);
		status = tree_check_keys(sources->items[i], keys, err);
	}
	return status;
}

enum status expect_add(struct expectations *e, const char *name, const char *text, size_t size,
		       struct error *err)
{
	static const char *const keys[] = {"sources", "skus",	  "bands", "ceilings", "shares", "unknown",
					   "rules",   "decisive", "xids",  "operator", NULL};
	struct tree **trees = expect_grow(e->tree, e->tree_count, sizeof(*trees), err);
	const struct tree *root, *list, *sources;
	enum status status;
	size_t i;

	if (!trees)
		return STATUS_NO_RESOURCE;
	e->tree = trees;
	status = tree_parse(&e->tree[e->tree_count], name, text, size, err);
	if (status)
		return status;
	root = e->tree[e->tree_count++];
	if (!root || root->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:1: an expectation file must be a map", name);
	status = tree_check_keys(root, keys, err);
	sources = tree_get(root, "sources");
	if (!status)
		status = sources_check(sources, err);
	for (i = 0; i < sizeof(sections) / sizeof(sections[0]) && !status; i++) {
		list = tree_get(root, sections[i].key);
		if (list && list->kind != TREE_LIST)
			status = error_set(err, STATUS_BAD_INPUT, "%s:%d: %s must be a list", name,
					   list->line, sections[i].key);
		else if (list)
			status = sections[i].read(e, list, sources, err);
	}
	return status;
}

static bool is_yaml(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && !strcmp(name + n - 5, ".yaml");
}

static enum status load_embedded(struct expectations *e, struct text *all, struct error *err)
{
	static const char prefix[] = "expectations/";
	const struct embedded *f;
	enum status status = STATUS_OK;
	size_t i;

	for (i = 0; !status && (f = embedded_at(i)); i++) {
		if (strncmp(f->name, prefix, sizeof(prefix) - 1) || !is_yaml(f->name))
			continue;
		expect_saved_add(all, f->name + sizeof(prefix) - 1, f->data, f->size);
		status = expect_add(e, f->name, (const char *)f->data, f->size, err);
	}
	return status;
}

struct names {
	char **name;
	size_t count;
};

/* Lists the names below dir/below, such as "bands/h100.yaml". Folders are searched two levels deep. */
static enum status names_list(struct names *n, const char *dir, const char *below, struct error *err)
{
	char path[4096];
	struct dirent *entry;
	enum status status = STATUS_OK;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", dir, below);
	d = opendir(path);
	if (!d)
		return error_errno(err, errno, "expectations folder %s", path);
	while (!status && (entry = readdir(d))) {
		char name[512];
		char **grown;

		snprintf(name, sizeof(name), "%s%s%s", below, *below ? "/" : "", entry->d_name);
		if (entry->d_name[0] == '.')
			continue;
		if (!*below && !strchr(entry->d_name, '.')) {
			status = names_list(n, dir, name, err);
			continue;
		}
		if (!is_yaml(name))
			continue;
		if (n->count == EXPECT_FILES_MAX) {
			status = error_set(err, STATUS_BAD_INPUT, "%s holds more than %d files", dir,
					   EXPECT_FILES_MAX);
			break;
		}
		grown = expect_grow(n->name, n->count, sizeof(*grown), err);
		if (!grown) {
			status = STATUS_NO_RESOURCE;
			break;
		}
		n->name = grown;
		grown[n->count] = strdup(name);
		if (!grown[n->count++])
			status = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
						 "no memory for file names");
	}
	closedir(d);
	return status;
}

static enum status load_folder(struct expectations *e, struct text *all, const char *dir, struct error *err)
{
	struct names names = {0};
	enum status status = names_list(&names, dir, "", err);
	size_t i;

	if (!status && names.count)
		qsort(names.name, names.count, sizeof(*names.name), text_compare);
	for (i = 0; i < names.count && !status; i++) {
		char path[4096 + 512], *data = NULL;
		size_t size = 0;

		snprintf(path, sizeof(path), "%s/%s", dir, names.name[i]);
		status = file_read(&data, &size, path, FILE_MAX, err);
		if (!status) {
			expect_saved_add(all, names.name[i], data, size);
			status = expect_add(e, path, data, size, err);
		}
		if (!status && all->size > EXPECT_BYTES_MAX)
			status = error_set(err, STATUS_BAD_INPUT,
					   "%s holds more than %zu bytes of expectations", dir,
					   EXPECT_BYTES_MAX);
		free(data);
	}
	if (!status && !names.count)
		status = error_set(err, STATUS_BAD_INPUT, "%s holds no expectation files (.yaml)", dir);
	for (i = 0; i < names.count; i++)
		free(names.name[i]);
	free(names.name);
	return status;
}

static enum status load_file(struct expectations *e, struct text *all, const char *path, struct error *err)
{
	char *data = NULL;
	size_t size = 0;
	enum status status = file_read(&data, &size, path, EXPECT_BYTES_MAX, err);

	if (!status)
		status = expect_read_saved(e, path, data, size, err);
	text_add_bytes(all, data ? data : "", size);
	free(data);
	return status;
}

/* A named set: the built-in set and one file of marks on top of it. */
static const struct embedded *marks_find(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "marks/%.100s.yaml", name);
	return embedded_find(path);
}

static enum status load_marks(struct expectations *e, struct text *all, const struct embedded *marks,
			      struct error *err)
{
	char place[160];
	enum status status = load_embedded(e, all, err);

	snprintf(place, sizeof(place), "expectations/%.120s", marks->name);
	if (status)
		return status;
	expect_saved_add(all, marks->name, marks->data, marks->size);
	return expect_add(e, place, (const char *)marks->data, marks->size, err);
}

static enum status load_from(struct expectations *e, struct text *all, const char *from, struct error *err)
{
	const struct embedded *marks = from ? marks_find(from) : NULL;
	struct stat info;
	enum status status;

	if (!from)
		return load_embedded(e, all, err);
	if (marks && stat(from, &info))
		return load_marks(e, all, marks, err);
	if (!stat(from, &info) && !S_ISDIR(info.st_mode))
		return load_file(e, all, from, err);
	status = load_folder(e, all, from, err);
	return status ? status : expectations_check(e, err);
}

enum status expectations_load(struct expectations **e, const char *from, struct error *err)
{
	struct text all = {0};
	struct expectations *set = calloc(1, sizeof(*set));
	enum status status;

	*e = NULL;
	if (!set)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the expectations");
	status = load_from(set, &all, from, err);
	if (!status && all.failed)
		status = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					 "no memory for the expectations");
	if (status) {
		text_release(&all);
		expectations_free(set);
		return status;
	}
	file_sha256(set->hash, text_str(&all), all.size);
	if (from)
		set->text = all;
	else
		text_release(&all);
	*e = set;
	return STATUS_OK;
}

const struct text *expectations_text(const struct expectations *e)
{
	return &e->text;
}

void expectations_free(struct expectations *e)
{
	size_t i;

	if (!e)
		return;
	for (i = 0; i < e->band_count; i++)
		free(e->band[i].when.condition);
	for (i = 0; i < e->ceiling_count; i++)
		free(e->ceiling[i].when.condition);
	for (i = 0; i < e->share_count; i++)
		free(e->share[i].when.condition);
	for (i = 0; i < e->unknown_count; i++)
		free(e->unknown[i].when.condition);
	for (i = 0; i < e->rule_count; i++) {
		free(e->rule[i].when.condition);
		free(e->rule[i].unless.condition);
	}
	for (i = 0; i < e->decisive_count; i++)
		free(e->decisive[i].needed_when.condition);
	for (i = 0; i < e->operator_count; i++)
		free(e->operator_[i].when.condition);
	for (i = 0; i < e->tree_count; i++)
		tree_free(e->tree[i]);
	free(e->tree);
	free(e->sku);
	free(e->band);
	free(e->ceiling);
	free(e->share);
	free(e->unknown);
	free(e->rule);
	free(e->decisive);
	free(e->xid);
	free(e->operator_);
	text_release(&e->text);
	free(e);
}

const char *expectations_hash(const struct expectations *e)
{
	return e->hash;
}

const char *expectations_sku(const struct expectations *e, const struct gpu *g)
{
	const struct sku *s = expect_sku(e, g);

	return s ? s->name : "";
}
