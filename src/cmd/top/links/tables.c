/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a state as tables. */
#include "cmd/info/info.h"
#include "cmd/top/links/links.h"
#include "core/json/member.h"
#include "core/text/units.h"

/* "12.3 GB/s", or "-" if the rate is not available. */
static void add_rate(struct text *t, const json_t *rates, const char *name)
{
	const json_t *rate = json_object_get(rates, name);
	char shown[32];

	if (!rate) {
		text_add(t, "-");
		return;
	}
	units_format(shown, sizeof(shown), json_number_value(rate), "B/s");
	text_add(t, shown);
}

json_int_t links_risen(const json_t *row)
{
	json_int_t sum = 0;
	const char *key;
	json_t *value;

	json_object_foreach(json_object_get(row, "risen"), key, value) sum += json_integer_value(value);
	return sum;
}

static void add_errors(struct text *t, const json_t *row)
{
	const json_t *count = json_object_get(row, "error_count");

	if (!count)
		text_add(t, "-");
	else
		text_addf(t, "%lld", (long long)json_integer_value(count));
	if (links_risen(row))
		text_addf(t, " (+%lld)", (long long)links_risen(row));
}

/* Lists counters that rose: "error_replay +3, error_crc +1". */
static void add_risen(struct text *t, const json_t *row)
{
	const char *key, *gap = "";
	json_t *value;

	json_object_foreach(json_object_get(row, "risen"), key, value)
	{
		text_addf(t, "%s%s +%lld", gap, key, (long long)json_integer_value(value));
		gap = ", ";
	}
}

static void nccl_text(struct text *t, const json_t *part)
{
	const json_t *rows = json_object_get(part, "settings"), *row;
	struct text lines = {0};
	size_t i;

	text_add(t, "NCCL\n");
	json_array_foreach(json_object_get(part, "unreadable"), i, row)
		info_row_unreadable(t, json_member_text(row, "path"), json_member_text(row, "error"));
	if (!json_array_size(rows)) {
		text_add(t, "  no NCCL variable is set, as recommended\n");
		return;
	}
	text_add(&lines, "variable\tfrom\tverdict\tmeaning\n");
	json_array_foreach((json_t *)rows, i, row)
	{
		struct text clean = {0};

		text_addf(&clean, "%s=%.200s", json_member_text(row, "name"), json_member_text(row, "value"));
		for (size_t c = 0; c < clean.size; c++)
			if (clean.data[c] == '\t' || clean.data[c] == '\n')
				clean.data[c] = ' ';
		text_addf(&lines, "%s\t%s\t%s\t%s\n", text_str(&clean), json_member_text(row, "from"),
			  json_member_text(row, "verdict"), json_member_text(row, "says"));
		text_release(&clean);
	}
	info_columns(t, text_str(&lines));
	text_release(&lines);
}

static void link_lines(struct text *t, const json_t *links, bool all)
{
	struct text lines = {0};
	const json_t *link;
	bool any = false;
	size_t i;

	text_add(
		&lines,
		">link\tstate\tversion\tto\t>speed\t>payload out\t>payload in\t>raw out\t>raw in\t>errors\n");
	json_array_foreach((json_t *)links, i, link)
	{
		const json_t *rates = json_object_get(link, "rates");
		bool up = json_is_true(json_object_get(link, "active"));

		if (!all && up && !links_risen(link))
			continue;
		any = true;
		text_addf(&lines, "%.0f\t%s\t%s\t%s %s\t", info_number(link, "link"), up ? "up" : "DOWN",
			  json_member_text(link, "version"), json_member_text(link, "remote_type"),
			  json_member_text(link, "remote_pci"));
		if (json_object_get(link, "rate_gbps"))
			text_addf(&lines, "%.5g GB/s", info_number(link, "rate_gbps"));
		for (size_t r = 0; r < 4; r++) {
			static const char *const names[] = {"payload_tx", "payload_rx", "raw_tx", "raw_rx"};

			text_add(&lines, "\t");
			add_rate(&lines, rates, names[r]);
		}
		text_add(&lines, "\t");
		add_errors(&lines, link);
		text_add(&lines, "\n");
	}
	if (any)
		info_columns(t, text_str(&lines));
	text_release(&lines);
}

static void gpu_text(struct text *t, const json_t *gpu, bool detail)
{
	const json_t *links = json_object_get(gpu, "links"), *sum = json_object_get(gpu, "sum"), *link;
	const char *why = "";
	struct text line = {0};
	char name[40];
	size_t i;

	snprintf(name, sizeof(name), "GPU %.0f %s", info_number(gpu, "gpu"), json_member_text(gpu, "pci"));
	json_array_foreach((json_t *)links, i, link) why = *why ? why : json_member_text(link, "rates_why");
	if (*json_member_text(gpu, "why")) {
		info_row_unreadable(t, name, json_member_text(gpu, "why"));
	} else if (!json_array_size(links)) {
		info_row(t, name, "no NVLink: %s", json_member_text(gpu, "links_why"));
	} else {
		text_addf(&line, "%.0f of %zu links up", info_number(gpu, "up"), json_array_size(links));
		if (json_object_size(sum)) {
			text_add(&line, "; payload ");
			add_rate(&line, sum, "payload_tx");
			text_add(&line, " out, ");
			add_rate(&line, sum, "payload_rx");
			text_add(&line, " in; raw ");
			add_rate(&line, sum, "raw_tx");
			text_add(&line, " out, ");
			add_rate(&line, sum, "raw_rx");
			text_add(&line, " in");
		}
		if (*why)
			text_addf(&line, "; rates not available: %s", why);
		info_row(t, name, "%s", text_str(&line));
		link_lines(t, links, detail);
	}
	text_release(&line);
}

static void nvlink_text(struct text *t, const json_t *part, bool detail)
{
	const json_t *gpu;
	size_t i;

	text_add(t, "NVLink\n");
	if (*json_member_text(part, "why"))
		info_row_unreadable(t, "NVLink", json_member_text(part, "why"));
	if (*json_member_text(part, "none"))
		text_addf(t, "  %s\n", json_member_text(part, "none"));
	json_array_foreach(json_object_get(part, "gpus"), i, gpu) gpu_text(t, gpu, detail);
}

static void port_line(struct text *lines, const json_t *port)
{
	const json_t *rates = json_object_get(port, "rates");

	text_addf(lines, "%s/%s\t%s\t%s\t%s\t%s\t", json_member_text(port, "device"),
		  json_member_text(port, "port"), json_member_text(port, "kind"),
		  json_member_text(port, "state"), json_member_text(port, "physical"),
		  json_member_text(port, "rate_text"));
	if (json_object_get(port, "lid"))
		text_addf(lines, "%.0f", info_number(port, "lid"));
	text_addf(lines, "\t%s\t", json_member_text(port, "gid"));
	if (json_object_get(port, "gid_index"))
		text_addf(lines, "%.0f", info_number(port, "gid_index"));
	text_addf(lines, "\t%s\t", json_member_text(port, "interface"));
	add_rate(lines, rates, "tx");
	text_add(lines, "\t");
	add_rate(lines, rates, "rx");
	text_add(lines, "\t");
	add_errors(lines, port);
	text_add(lines, "\n");
}

static void port_remarks(struct text *t, const json_t *port)
{
	struct text grown = {0};
	char name[96];
	const char *file;
	json_t *why;

	snprintf(name, sizeof(name), "%s/%s", json_member_text(port, "device"),
		 json_member_text(port, "port"));
	add_risen(&grown, port);
	if (grown.size)
		info_row(t, name, "%s", text_str(&grown));
	text_release(&grown);
	if (*json_member_text(port, "rates_why"))
		info_row(t, name, "rates not available: %s", json_member_text(port, "rates_why"));
	json_object_foreach(json_object_get(port, "unreadable"), file, why)
		info_row(t, name, "%s: unreadable: %s", file, json_string_value(why));
}

static void ib_text(struct text *t, const json_t *part)
{
	const json_t *ports = json_object_get(part, "ports"), *port;
	struct text lines = {0};
	size_t i;

	text_add(t, "InfiniBand and RoCE\n");
	if (*json_member_text(part, "why"))
		info_row_unreadable(t, "ports", json_member_text(part, "why"));
	if (*json_member_text(part, "none"))
		text_addf(t, "  %s\n", json_member_text(part, "none"));
	text_add(&lines,
		 "port\tkind\tstate\tphysical\trate\t>LID\tGID\t>index\tinterface\t>out\t>in\t>errors\n");
	json_array_foreach((json_t *)ports, i, port) port_line(&lines, port);
	if (json_array_size(ports))
		info_columns(t, text_str(&lines));
	text_release(&lines);
	json_array_foreach((json_t *)ports, i, port) port_remarks(t, port);
}

void links_text(struct text *out, const json_t *state, bool detail)
{
	const json_t *nccl = json_object_get(state, "nccl"), *nvlink = json_object_get(state, "nvlink");
	const json_t *ib = json_object_get(state, "ib");

	if (nccl)
		nccl_text(out, nccl);
	if (nvlink)
		nvlink_text(out, nvlink, detail);
	if (ib)
		ib_text(out, ib);
}
