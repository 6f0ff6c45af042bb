/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading of a GPU: its Xids in the kernel log, from before the run. Xids come in bursts: the first is the
 * cause, the others follow from it. A burst ends after three minutes without an Xid. If the log cannot be
 * read, the result is not "no Xid".
 */
#include "core/text/text.h"
#include "probe/shared/reading.h"

#define FIELDS(X)                                                                                            \
	X(kernel_log_readable, "", U64, 1, "the kernel log could be read (1)")                               \
	X(xid_count, "", U64, -1, "Xids of this GPU in the kernel log")                                      \
	X(xid_list, "", TEXT, 0, "the last 16 Xids as number@seconds since boot, oldest first")              \
	X(xid_first, "", U64, 0, "first Xid of the last burst")                                              \
	X(xid_first_text, "", TEXT, 0, "the driver's text for the first Xid of the last burst")

static const struct field fields[] = {FIELDS(FIELD_ROW)};
enum { FIELDS(READING_PLACE) COUNT };
enum { LISTED = 16 };
static const double quiet_s = 180;

/* An Xid without a PCI address may belong to any GPU, so it counts for each. */
static bool is_of(const json_t *row, const struct gpu *g)
{
	const char *pci = json_string_value(json_object_get(row, "pci"));

	return json_is_integer(json_object_get(row, "xid")) && (!pci || !*pci || !strcmp(pci, g->pci));
}

static void list_xids(const json_t *rows, const struct gpu *g, struct result *out)
{
	const json_t *row, *first = NULL;
	struct text list = {0};
	double last_s = 0;
	size_t i, count = 0, seen = 0;

	json_array_foreach((json_t *)rows, i, row) count += is_of(row, g);
	json_array_foreach((json_t *)rows, i, row)
	{
		double now_s = json_number_value(json_object_get(row, "uptime_s"));

		if (!is_of(row, g))
			continue;
		if (!first || now_s - last_s > quiet_s)
			first = row;
		last_s = now_s;
		if (++seen + LISTED > count)
			text_addf(&list, "%s%lld@%.1f", list.size ? " " : "",
				  (long long)json_integer_value(json_object_get(row, "xid")), now_s);
	}
	result_u64(out, &fields[AT_xid_count], count);
	if (list.size && !list.failed)
		result_text(out, &fields[AT_xid_list], list.data);
	if (first) {
		result_u64(out, &fields[AT_xid_first],
			   (uint64_t)json_integer_value(json_object_get(first, "xid")));
		result_text(out, &fields[AT_xid_first_text],
			    json_string_value(json_object_get(first, "text")));
	}
	text_release(&list);
}

/* A lost GPU has no facts, but the log may say why. So this reading does not need the GPU to answer. */
static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const json_t *log = json_object_get(machine_json(m), "kernel_log");
	const struct gpu *g = t->gpu_count ? machine_gpu(m, t->gpu[0]) : NULL;
	bool readable;

	(void)opts;
	if (!g)
		return error_set(err, STATUS_BUG, "a reading of a GPU has no GPU in its target");
	if (!reading_log(m, &readable))
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_NO_LOG, "the kernel log was not read");
	result_u64(out, &fields[AT_kernel_log_readable], readable);
	if (readable)
		list_xids(json_object_get(log, "xids"), g, out);
	return STATUS_OK;
}

const struct probe probe_xid = {
	.name = "xid",
	.summary = "Xids of the GPU in the kernel log before the run",
	.kind = PROBE_READING,
	.reads = TARGET_GPU,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
