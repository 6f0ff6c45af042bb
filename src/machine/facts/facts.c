/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/facts/facts.h"
#include <ctype.h>
#include <math.h>
#include "core/text/text.h"

void facts_set(json_t *map, const char *key, json_t *value)
{
	if (value)
		json_object_set_new(map, key, value);
}

void facts_set_text(json_t *map, const char *key, const char *text)
{
	if (text && *text)
		facts_set(map, key, json_string(text));
}

void facts_set_number(json_t *map, const char *key, double value)
{
	if (!isfinite(value))
		return;
	if (fabs(value) < 9e15 && floor(value) == value)
		facts_set(map, key, json_integer((json_int_t)value));
	else
		facts_set(map, key, json_real(value));
}

bool facts_number(const char *text, double *out)
{
	char *end;
	double value;

	if (!text || !*text || isspace((unsigned char)*text))
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		value = (double)strtoull(text, &end, 16);
	else if (isdigit((unsigned char)*text) || *text == '-')
		value = strtod(text, &end);
	else
		return false;
	while (isspace((unsigned char)*end))
		end++;
	if (*end || end == text || !isfinite(value))
		return false;
	*out = value;
	return true;
}

bool facts_line(const char *text, const char *name, char sep, char *out, size_t size)
{
	size_t n = strlen(name);

	for (const char *line = text; line && *line; line += strspn(line, "\n")) {
		size_t length = strcspn(line, "\n");

		if (length > n && !strncmp(line, name, n)) {
			const char *p = line + n + strspn(line + n, " \t");

			if (p < line + length && *p == sep) {
				p++;
				p += strspn(p, " \t");
				while (length && isspace((unsigned char)line[length - 1]))
					length--;
				snprintf(out, size, "%.*s", p < line + length ? (int)(line + length - p) : 0,
					 p);
				return true;
			}
		}
		line += strcspn(line, "\n");
	}
	return false;
}

unsigned facts_cpulist_count(const char *list)
{
	unsigned count = 0;

	while (list && isdigit((unsigned char)*list)) {
		char *end;
		unsigned long from = strtoul(list, &end, 10), to = from;

		if (*end == '-' && !isdigit((unsigned char)end[1]))
			return 0;
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		if (to < from || to > 65535)
			return 0;
		count += (unsigned)(to - from + 1);
		if (*end != ',')
			return *end ? 0 : count;
		list = end + 1;
	}
	return 0;
}

enum cause facts_cause_of(const char *why)
{
	if (strstr(why, "ermission") || strstr(why, "not permitted"))
		return CAUSE_PERMISSION;
	return CAUSE_UNSUPPORTED;
}

void facts_unreadable(struct facts *f, const char *what, enum cause cause, const char *why)
{
	json_t *list = json_object_get(f->tree, "unreadable");

	json_array_append_new(
		list, json_pack("{s:s,s:s,s:s}", "what", what, "cause", cause_name(cause), "why", why));
}

json_t *facts_read(struct source *s, const struct machine_scope *scope)
{
	struct facts f = {.source = s, .up_to = scope->up_to, .libs = scope->libs};
	static const char *const layers[] = {"host", "nvml", "cuda", "software"};

	f.tree = json_pack("{s:i,s:b,s:s,s:s,s:[]}", "format", 1, "live", source_is_live(s), "label",
			   source_label(s), "layer", layers[f.up_to], "unreadable");
	if (!f.tree)
		return NULL;
	source_want_libs(s, f.libs);
	if (facts_want_software(&f)) /* read last, because opening libraries takes longest and does not
					disturb the readings before */
		source_start_layer(s, LAYER_SOFTWARE);
	facts_system(&f);
	facts_cpu(&f);
	facts_memory(&f);
	facts_gpus(&f);
	facts_ports(&f);
	facts_storage(&f);
	facts_log(&f);
	facts_software(&f);
	return f.tree;
}
