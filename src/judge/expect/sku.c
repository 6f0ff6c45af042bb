/* SPDX-License-Identifier: Apache-2.0 */
/* Products and architectures: reads their rows and finds the row that fits a device. */
#include "judge/expect/expect.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define X(name, unit, low, high) #name,
static const char *const fact_names[] = {SKU_FACTS(X)};
#undef X
#define X(name, unit, low, high) unit,
static const char *const fact_units[] = {SKU_FACTS(X)};
#undef X
#define X(name, unit, low, high) {low, high},
static const double fact_range[][2] = {SKU_FACTS(X)};
#undef X

const char *sku_fact_name(enum sku_fact fact)
{
	return fact_names[fact];
}

static enum status fact_set(struct sku *s, const char *key, const struct tree *value,
			    const struct source *source, double at_hz, struct error *err)
{
	struct sku_value v = {.source = *source, .at_hz = at_hz, .line = value->line, .present = true};
	enum status status;
	size_t i;

	for (i = 0; i < SKU_FACT_COUNT && strcmp(fact_names[i], key);)
		i++;
	if (i == SKU_FACT_COUNT)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: no SKU has a fact %s", value->file,
				 value->line, key);
	if (s->fact[i].present)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s is already given on line %d", value->file,
				 value->line, key, s->fact[i].line);
	status = expect_number(&v.value, value, fact_units[i], err);
	if (status)
		return status;
	if (v.value < fact_range[i][0] || v.value > fact_range[i][1])
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: %s of %g is not from %g to %g; check its unit", value->file,
				 value->line, key, v.value, fact_range[i][0], fact_range[i][1]);
	s->fact[i] = v;
	return STATUS_OK;
}

/* Reads one group of facts: source, confidence, optionally `at` (the clock that the datasheet figures
 * assume), then the facts. */
static enum status facts_read(struct sku *s, const struct tree *group, const struct tree *sources,
			      struct error *err)
{
	const struct tree *at = group->kind == TREE_MAP ? tree_get(group, "at") : NULL;
	struct source source = {0};
	double at_hz = 0;
	enum status status;
	size_t i;

	if (group->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: facts must be a list of maps", group->file,
				 group->line);
	status = expect_source(&source, group, sources, err);
	if (!status && at)
		status = expect_number(&at_hz, at, "Hz", err);
	for (i = 0; i < group->count && !status; i++) {
		const char *key = group->keys[i];

		if (strcmp(key, "source") && strcmp(key, "confidence") && strcmp(key, "at"))
			status = fact_set(s, key, group->items[i], &source, at_hz, err);
	}
	return status;
}

static enum status ids_read(struct sku *s, const struct tree *list, struct error *err)
{
	size_t i;

	if (!list || list->kind != TREE_LIST || !list->count || list->count > COUNT(s->pci))
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s needs a list of 1 to %zu PCI device ids",
				 s->file, s->line, s->name, COUNT(s->pci));
	for (i = 0; i < list->count; i++) {
		const char *text = list->items[i]->kind == TREE_SCALAR ? list->items[i]->text : "";
		char *end;
		unsigned long id = strtoul(text, &end, 16);

		if (!*text || *end || !id || id > 0xffff)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s:%d: %s is not a PCI device id such as 0x2330", list->file,
					 list->items[i]->line, text);
		s->pci[s->pci_count++] = (unsigned)id;
	}
	return STATUS_OK;
}

static enum status match_read(struct sku *s, const struct tree *match, const struct tree *sources,
			      struct error *err)
{
	static const char *const keys[] = {"pci", "sm_count", "memory", "source", "confidence", NULL};
	const struct tree *sm, *memory;
	enum status status;

	if (!match || match->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s has no match", s->file, s->line, s->name);
	status = tree_check_keys(match, keys, err);
	if (!status)
		status = expect_source(&s->source, match, sources, err);
	if (!status)
		status = ids_read(s, tree_get(match, "pci"), err);
	sm = tree_get(match, "sm_count");
	memory = tree_get(match, "memory");
	if (!status && (!sm || !memory))
		status = error_set(
			err, STATUS_BAD_INPUT,
			"%s:%d: %s needs sm_count and memory: several products can share one device id",
			s->file, s->line, s->name);
	if (!status && sm->kind == TREE_LIST) {
		status = expect_range(&s->sm_low, &s->sm_high, sm, "", err);
	} else if (!status) {
		status = expect_number(&s->sm_low, sm, "", err);
		s->sm_high = s->sm_low;
	}
	if (!status)
		status = expect_range(&s->memory_low, &s->memory_high, memory, "B", err);
	return status;
}

static enum status sku_read(struct sku *s, const struct tree *row, const struct tree *sources,
			    struct error *err)
{
	static const char *const keys[] = {"name", "title", "cc", "match", "facts", NULL};
	const struct tree *facts;
	double cc = 0;
	enum status status;
	size_t i;

	s->file = row->file;
	s->line = row->line;
	status = expect_need_text(&s->name, row, "name", err);
	if (!status)
		status = tree_check_keys(row, keys, err);
	if (!status)
		status = expect_need_text(&s->title, row, "title", err);
	if (!status && tree_get(row, "cc")) {
		status = expect_number(&cc, tree_get(row, "cc"), "", err);
		s->cc = (int)cc;
	} else if (!status) {
		status = match_read(s, tree_get(row, "match"), sources, err);
	}
	facts = tree_get(row, "facts");
	if (!status && (!facts || facts->kind != TREE_LIST || !facts->count))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: %s has no facts", row->file, row->line,
				   s->name);
	for (i = 0; !status && i < facts->count; i++)
		status = facts_read(s, facts->items[i], sources, err);
	return status;
}

enum status expect_read_skus(struct expectations *e, const struct tree *list, const struct tree *sources,
			     struct error *err)
{
	enum status status = STATUS_OK;
	struct sku *grown;
	size_t i;

	for (i = 0; i < list->count && !status; i++) {
		grown = expect_grow(e->sku, e->sku_count, sizeof(*grown), err);
		if (!grown)
			return STATUS_NO_RESOURCE;
		e->sku = grown;
		status = sku_read(&grown[e->sku_count], list->items[i], sources, err);
		if (!status && expect_sku_by_name(e, grown[e->sku_count].name))
			status = error_set(err, STATUS_BAD_INPUT, "%s:%d: %s is listed twice",
					   list->items[i]->file, list->items[i]->line,
					   grown[e->sku_count].name);
		e->sku_count++;
	}
	return status;
}

static bool sku_fits(const struct sku *s, const struct gpu *g)
{
	double sm = gpu_get(g, GPU_FACT_sm_count, 0), memory = gpu_get(g, GPU_FACT_memory_bytes, 0);
	size_t i;

	if (s->cc || (g->pci_device & 0xffff) != 0x10de)
		return false;
	for (i = 0; i < s->pci_count && s->pci[i] != g->pci_device >> 16;)
		i++;
	if (i == s->pci_count || !gpu_has(g, GPU_FACT_memory_bytes))
		return false;
	if (gpu_has(g, GPU_FACT_sm_count) && (sm < s->sm_low || sm > s->sm_high))
		return false;
	return memory >= s->memory_low && memory <= s->memory_high;
}

const struct sku *expect_sku(const struct expectations *e, const struct gpu *g)
{
	const struct sku *found = NULL;
	size_t i;

	for (i = 0; i < e->sku_count; i++)
		if (sku_fits(&e->sku[i], g)) {
			if (found)
				return NULL; /* two rows fit, and choosing one could be wrong */
			found = &e->sku[i];
		}
	return found;
}

const struct sku *expect_sku_by_name(const struct expectations *e, const char *name)
{
	size_t i;

	for (i = 0; i < e->sku_count; i++)
		if (!strcmp(e->sku[i].name, name))
			return &e->sku[i];
	return NULL;
}

const struct sku *expect_arch(const struct expectations *e, int cc)
{
	size_t i;

	for (i = 0; i < e->sku_count; i++)
		if (e->sku[i].cc && e->sku[i].cc == cc)
			return &e->sku[i];
	return NULL;
}

/* e4m3 and e5m2 share the facts of fp8; other types have facts of their own. */
static const struct sku_value *by_type(const struct sku *s, const char *prefix, const char *type)
{
	char name[32];
	size_t i;

	if (!strcmp(type, "e4m3") || !strcmp(type, "e5m2"))
		type = "fp8";
	snprintf(name, sizeof(name), "%s%s", prefix, type);
	for (i = 0; i < SKU_FACT_COUNT; i++)
		if (!strcmp(fact_names[i], name))
			return s->fact[i].present ? &s->fact[i] : NULL;
	return NULL;
}

const struct sku_value *sku_flop(const struct sku *s, const char *type)
{
	return by_type(s, "flop_", type);
}

const struct sku_value *sku_datasheet(const struct sku *s, const char *type)
{
	return by_type(s, "datasheet_", type);
}
