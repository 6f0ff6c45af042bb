/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/compare/facts_difference.h"
#include "core/text/text.h"

enum { DEPTH_MAX = 8 };

/* Keys whose values change although nobody changed the machine. */
static const char *const moving[] = {
	"live",
	"label",
	"unreadable",
	"boot_id",
	"loadavg",
	"cpu_use",
	"root",
	"uid", /* name of this key in older journals */
	"mhz_reported",
	"available_bytes",
	"free_bytes",
	"hugepages_free",
	"log",
	"uptime_s",
	"utilization_share",
	"power_w",
	"temperature_c",
	"temperature_memory_c",
	"sm_clock_mhz",
	"memory_clock_mhz",
	"clock_reasons",
	"memory_free_bytes",
	"memory_used_bytes",
	"pcie_gen",
	"pcie_replays",
	"processes",
	"process_list",
	"processes_graphics",
	"swap_used_bytes",
	"ecc_volatile_corrected",
	"ecc_aggregate_corrected",
	"container_id",
	"hostname",
	"uuid",
	"serial",
	"address", /* of a port */
	"guid",
	"pci",
	"RANK", /* rank and start of this process */
	"LOCAL_RANK",
	"ASSAY_RANK",
	"ASSAY_LOCAL_RANK",
	"SLURMD_NODENAME",
	"SLURM_JOB_ID",
};

static bool moves(const char *key)
{
	size_t i;

	for (i = 0; i < sizeof(moving) / sizeof(moving[0]); i++)
		if (!strcmp(moving[i], key))
			return true;
	return false;
}

void facts_difference_leaf(const json_t *v, char *out, size_t size)
{
	char *text;

	if (!v) {
		text_copy(out, size, "absent");
		return;
	}
	if (json_is_string(v)) {
		text_copy(out, size, json_string_value(v));
		return;
	}
	text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	text_copy(out, size, text ? text : "");
	free(text);
}

/* The name of a list entry; NULL: it has none. */
static const char *entry_name(const json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "path"));

	name = name ? name : json_string_value(json_object_get(entry, "name"));
	return name ? name : json_string_value(entry);
}

static bool has_entry(const json_t *list, const char *name)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry)
	{
		const char *other = entry_name(entry);

		if (other && !strcmp(other, name))
			return true;
	}
	return false;
}

/* Writes "3" or "4 with /dev/nvidia3". */
static void list_text(const json_t *list, const json_t *other, char *out, size_t size)
{
	const json_t *entry;
	struct text t = {0};
	bool alone = false;
	size_t i;

	text_addf(&t, "%zu", json_array_size(list));
	json_array_foreach(list, i, entry)
	{
		const char *name = entry_name(entry);

		if (!name || has_entry(other, name))
			continue;
		text_addf(&t, "%s%s", alone ? ", " : " with ", name);
		alone = true;
	}
	text_copy(out, size, text_str(&t));
	text_release(&t);
}

void facts_difference_two(const json_t *a, const json_t *b, char *before, char *after, size_t size)
{
	if (json_is_array(a) && json_is_array(b) && json_array_size(a) != json_array_size(b)) {
		list_text(a, b, before, size);
		list_text(b, a, after, size);
		return;
	}
	facts_difference_leaf(a, before, size);
	facts_difference_leaf(b, after, size);
}

struct walk {
	facts_difference_visit *visit;
	void *arg;
};

static enum status walk(const struct walk *w, const char *path, const json_t *a, const json_t *b, int depth,
			struct error *err);

/* True for the output folder of the run itself. */
static bool own_folder(const json_t *place, const char *key)
{
	const char *role = json_string_value(json_object_get(place, "role"));

	return role && !strcmp(role, "output") && !strcmp(key, "path");
}

static enum status walk_object(const struct walk *w, const char *path, const json_t *a, const json_t *b,
			       int depth, struct error *err)
{
	enum status status = STATUS_OK;
	const char *key;
	char below[128];
	json_t *v;

	json_object_foreach((json_t *)a, key, v)
	{
		if (moves(key) || own_folder(a, key) || status)
			continue;
		snprintf(below, sizeof(below), "%.90s%s%.32s", path, *path ? "." : "", key);
		status = walk(w, below, v, json_object_get(b, key), depth + 1, err);
	}
	json_object_foreach((json_t *)b, key, v)
	{
		if (moves(key) || status || json_object_get(a, key))
			continue;
		snprintf(below, sizeof(below), "%.90s%s%.32s", path, *path ? "." : "", key);
		status = w->visit(w->arg, below, NULL, v, err);
	}
	return status;
}

static enum status walk(const struct walk *w, const char *path, const json_t *a, const json_t *b, int depth,
			struct error *err)
{
	enum status status = STATUS_OK;
	char below[128];
	size_t i;

	if (json_equal(a, b))
		return STATUS_OK;
	if (json_is_object(a) && json_is_object(b) && depth < DEPTH_MAX)
		return walk_object(w, path, a, b, depth, err);
	if (!json_is_array(a) || !json_is_array(b) || json_array_size(a) != json_array_size(b) ||
	    depth >= DEPTH_MAX)
		return w->visit(w->arg, path, a, b, err);
	for (i = 0; i < json_array_size(a) && !status; i++) {
		snprintf(below, sizeof(below), "%.100s[%zu]", path, i);
		status = walk(w, below, json_array_get(a, i), json_array_get(b, i), depth + 1, err);
	}
	return status;
}

enum status facts_difference_walk(const char *path, const json_t *a, const json_t *b,
				  facts_difference_visit *visit, void *arg, struct error *err)
{
	const struct walk w = {visit, arg};

	return walk(&w, path, a, b, 0, err);
}
