/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between machines, or on one machine over time: the facts, less what moves by itself. */
#include "judge/compare.h"
#include "judge/context.h"
#include "core/text.h"
#include "judge/expect.h"

enum { DIFFERENCES_MAX = 200, DEPTH_MAX = 8 };

/* Keys whose values move without anybody changing the machine. */
static const char *const moving[] = {
	"live",
	"label",
	"unreadable",
	"boot_id",
	"loadavg",
	"root",
	"uid", /* what journals before had for it */
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
};

static bool moves(const char *key)
{
	size_t i;

	for (i = 0; i < sizeof(moving) / sizeof(moving[0]); i++)
		if (!strcmp(moving[i], key))
			return true;
	return false;
}

static void leaf_text(const json_t *v, char *out, size_t size)
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

static enum status differ(struct comparison *out, const char *path, const json_t *a, const json_t *b,
			  const char *run, struct error *err)
{
	struct compare_difference *d;

	if (out->difference_count == DIFFERENCES_MAX)
		return STATUS_OK;
	d = expect_grow(out->difference, out->difference_count, sizeof(*d), err);
	if (!d)
		return STATUS_NO_RESOURCE;
	out->difference = d;
	d += out->difference_count++;
	text_copy(d->path, sizeof(d->path), path);
	leaf_text(a, d->before, sizeof(d->before));
	leaf_text(b, d->after, sizeof(d->after));
	d->run = run;
	return STATUS_OK;
}

static enum status walk(struct comparison *out, const char *path, const json_t *a, const json_t *b,
			const char *run, int depth, struct error *err);

/* The folder that the run itself was told to write. */
static bool own_folder(const json_t *place, const char *key)
{
	const char *role = json_string_value(json_object_get(place, "role"));

	return role && !strcmp(role, "output") && !strcmp(key, "path");
}

static enum status walk_object(struct comparison *out, const char *path, const json_t *a, const json_t *b,
			       const char *run, int depth, struct error *err)
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
		status = walk(out, below, v, json_object_get(b, key), run, depth + 1, err);
	}
	json_object_foreach((json_t *)b, key, v)
	{
		if (moves(key) || status || json_object_get(a, key))
			continue;
		snprintf(below, sizeof(below), "%.90s%s%.32s", path, *path ? "." : "", key);
		status = differ(out, below, NULL, v, run, err);
	}
	return status;
}

static enum status walk(struct comparison *out, const char *path, const json_t *a, const json_t *b,
			const char *run, int depth, struct error *err)
{
	enum status status = STATUS_OK;
	char below[128];
	size_t i;

	if (json_equal(a, b))
		return STATUS_OK;
	if (json_is_object(a) && json_is_object(b) && depth < DEPTH_MAX)
		return walk_object(out, path, a, b, run, depth, err);
	if (!json_is_array(a) || !json_is_array(b) || json_array_size(a) != json_array_size(b) ||
	    depth >= DEPTH_MAX)
		return differ(out, path, a, b, run, err);
	for (i = 0; i < json_array_size(a) && !status; i++) {
		snprintf(below, sizeof(below), "%.100s[%zu]", path, i);
		status = walk(out, below, json_array_get(a, i), json_array_get(b, i), run, depth + 1, err);
	}
	return status;
}

enum status compare_inventory(struct comparison *out, const struct compare_run *runs, size_t count,
			      struct error *err)
{
	enum status status = STATUS_OK;
	const json_t *first, *other;
	size_t i;

	first = context_facts(runs[0].record);
	for (i = 1; i < count && !status; i++) {
		other = context_facts(runs[i].record);
		if (first && other)
			status = walk(out, "", first, other, runs[i].name, 0, err);
	}
	return status;
}
