/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and values of the facts tree (docs/explanation/design/machine.md) for people. */
#include "report/text/fact_label.h"
#include "core/text/text.h"
#include "machine/machine.h"
#include "report/text/format.h"

static const struct {
	const char *part, *shown;
} parts[] = {
	{"gpus", "GPU"},
	{"cpu", "CPU"},
	{"ports", "port"},
	{"limits", "limit"},
	{"environment", "variable"},
	{"device_nodes", "device node"},
};

#define X(name, unit, layer, help) {#name, unit, help},
static const struct shown_fact {
	const char *name, *unit, *help;
} gpu_facts[] = {GPU_FACTS(X)};
#undef X

/* The GPU fact that the path names; NULL: none. */
static const struct shown_fact *gpu_fact_at(const char *path)
{
	const char *facts = !strncmp(path, "gpus[", 5) ? strstr(path, "].facts.") : NULL;

	for (size_t i = 0; facts && i < sizeof(gpu_facts) / sizeof(gpu_facts[0]); i++)
		if (!strcmp(gpu_facts[i].name, facts + 8))
			return &gpu_facts[i];
	return NULL;
}

/* "part_number" to "part number", "numa[0].cpus" to "numa 0 cpus". */
static void add_plain(struct text *t, const char *path)
{
	for (; *path; path++)
		if (*path != ']')
			text_add_bytes(t, strchr("._[", *path) ? " " : path, 1);
}

static void add_part(struct text *t, const char *path, size_t n)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strlen(parts[i].part) == n && !strncmp(parts[i].part, path, n)) {
			text_add(t, parts[i].shown);
			return;
		}
	for (size_t i = 0; i < n; i++)
		text_add_bytes(t, path[i] == '_' ? " " : path + i, 1);
}

void fact_label(char *out, size_t size, const char *path)
{
	size_t n = strcspn(path, ".[");
	const struct shown_fact *fact = gpu_fact_at(path);
	const char *rest = path + n;
	struct text t = {0};

	add_part(&t, path, n);
	if (*rest == '[') {
		n = strcspn(rest, "]");
		text_add(&t, n > 1 ? " " : "s"); /* "[]": all GPUs */
		text_add_bytes(&t, rest + 1, n - 1);
		rest += n + (rest[n] == ']');
	}
	if (*rest == '.')
		rest++;
	if (*rest)
		text_add(&t, ": ");
	if (fact)
		text_add(&t, fact->help);
	else if (!strncmp(path, "environment.", 12))
		text_add(&t, rest);
	else
		add_plain(&t, rest);
	text_copy(out, size, text_str(&t));
	text_release(&t);
}

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n >= m && !strcmp(path + n - m, end);
}

void fact_leaf(char *out, size_t size, const char *path, const char *text)
{
	const struct shown_fact *fact = gpu_fact_at(path);
	char *rest;
	unsigned long long value = strtoull(text, &rest, 10);
	bool whole = *text >= '0' && *text <= '9' && !*rest;

	if (whole && (ends_with(path, ".pci_device") || ends_with(path, ".pci_subsystem")))
		snprintf(out, size, "%04llx:%04llx", value & 0xffff, value >> 16); /* as lspci prints them */
	else if (whole && ends_with(path, "bytes"))
		format_bytes(out, size, (double)value);
	else if (fact && *fact->unit && strcmp(text, "absent"))
		snprintf(out, size, "%s %s", text, fact->unit);
	else
		text_copy(out, size, text);
}
