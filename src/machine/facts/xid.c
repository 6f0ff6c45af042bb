/* SPDX-License-Identifier: Apache-2.0 */
/* Xids in the kernel log. A log that cannot be read is reported as such, because that does not mean "no Xid".
 */
#include "core/text/text.h"
#include "machine/facts/facts.h"

/* Parses "[12.5] NVRM: Xid (PCI:0000:1b:00): 79, pid=.., GPU has fallen off the bus." into number, address
 * and text. */
static json_t *xid_of(const char *line)
{
	const char *p = strstr(line, "NVRM: Xid (PCI:");
	unsigned domain, bus, device, number;
	char pci[24] = "", *end;
	double seconds = 0;
	json_t *row;

	if (!p)
		return NULL;
	p += strlen("NVRM: Xid (PCI:");
	if (sscanf(p, "%x:%x:%x", &domain, &bus, &device) == 3)
		snprintf(pci, sizeof(pci), "%04x:%02x:%02x.0", domain & 0xffffff, bus & 0xff, device & 0xff);
	p = strstr(p, "):");
	if (!p || sscanf(p + 2, "%u", &number) != 1)
		return NULL;
	if (line[0] == '[')
		seconds = strtod(line + 1, &end);
	row = json_pack("{s:i,s:s,s:s}", "xid", (int)number, "pci", pci, "text", p + 3);
	if (row && seconds > 0)
		json_object_set_new(row, "uptime_s", json_real(seconds));
	return row;
}

void facts_log(struct facts *f)
{
	const json_t *lines = source_value(f->source, "kernel_log"), *line;
	json_t *log = json_object(), *xids = json_array(), *other = json_array();
	size_t i;

	json_object_set_new(f->tree, "kernel_log", log);
	json_object_set_new(log, "readable", json_boolean(lines != NULL));
	if (!lines) {
		facts_set_text(log, "why", source_why(f->source, "kernel_log"));
		facts_unreadable(f, "kernel log", CAUSE_NO_LOG, source_why(f->source, "kernel_log"));
	}
	json_array_foreach((json_t *)lines, i, line)
	{
		const char *text = json_string_value(line);
		json_t *row = text ? xid_of(text) : NULL;

		if (row)
			json_array_append_new(xids, row);
		else if (text && (strstr(text, "SXid") || strstr(text, "AER:") ||
				  strstr(text, "Hardware Error") || strstr(text, "ut of memory: Killed")))
			json_array_append(other, (json_t *)line);
	}
	json_object_set_new(log, "xids", xids);
	json_object_set_new(log, "other", other);
}
