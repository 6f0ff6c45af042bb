/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/page/listing.h"

#include <ctype.h>
#include <math.h>

#include "core/text/utf8.h"

enum { LABEL_BYTES_MOST = 128 };

struct limit {
	size_t most;
	bool per_gpu;
};
static const struct limit limits[METRIC_SCOPE_COUNT] = {
#define X(scope, most_, per_gpu_) [METRIC_SCOPE_##scope] = {.most = most_, .per_gpu = per_gpu_},
	PAGE_LIMITS(X)
#undef X
};

/* ---- labels ---- */

static void add_escaped(struct text *out, const char *value)
{
	size_t left = LABEL_BYTES_MOST, size;

	for (; *value; value += size) {
		uint32_t code = utf8_decode(value, &size);

		if (size > left)
			break;
		left -= size;
		if (code == '\\' || code == '"')
			text_addf(out, "\\%c", (char)code);
		else if (code == '\n')
			text_add(out, "\\n");
		else if (code == UTF8_REPLACEMENT)
			text_add(out, "\xef\xbf\xbd");
		else
			text_add_bytes(out, value, size);
	}
}

void listing_add_label(struct text *out, const char *name, const char *value)
{
	bool first = !out->size || !out->data[out->size - 1]; /* each list ends with a NUL */

	if (!value || !*value)
		return;
	text_addf(out, "%s%s=\"", first ? "" : ",", name);
	add_escaped(out, value);
	text_add(out, "\"");
}

/* Prometheus reserves names that begin with two underscores. */
static bool is_label_name(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return strspn(name, letters) && strspn(name, all) == strlen(name) && strncmp(name, "__", 2);
}

static bool word_in(const char *words, const char *word)
{
	size_t size = strlen(word), n;

	for (; *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (n == size && !strncmp(words, word, size))
			return true;
	}
	return false;
}

/* Series with assay's names carry only what tells them apart on this node. assay_gpu_info has the rest. */
static bool is_short(enum metric_scope scope, const char *name)
{
	return word_in(metric_scope_row(scope)->page, name);
}

static bool is_repeated(const struct watch_entity *e, unsigned at)
{
	for (unsigned i = 0; i < at; i++)
		if (!strcmp(e->label[i].name, e->label[at].name))
			return true;
	return false;
}

/* Prometheus' names of labels that dcgm-exporter writes in its own way. */
static const char *info_name(const char *name)
{
	return !strcmp(name, "modelName")		 ? "model_name"
	       : !strcmp(name, "DCGM_FI_DRIVER_VERSION") ? "driver_version"
							 : name;
}

/* The kernel writes a PCI address as 0000:8e:00.0, NVML and dcgm-exporter as 00000000:8E:00.0. */
static const char *dcgm_value(const struct watch_label *label, char room[32])
{
	const char *value = label->value;
	size_t size = strlen(value);

	if (strcmp(label->name, "pci_bus_id") != 0 || strcspn(value, ":") != 4 || size > 20)
		return value;
	snprintf(room, 32, "0000%s", value);
	for (char *p = room; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return room;
}

enum style { STYLE_SHORT, STYLE_DCGM, STYLE_INFO };

static size_t add_labels(struct listing *l, const struct watch_entity *e, const char *hostname,
			 enum style style)
{
	size_t at = l->text.size;

	for (unsigned i = 0; i < e->label_count; i++) {
		const struct watch_label *label = &e->label[i];
		char room[32];

		if (is_label_name(label->name) && !is_repeated(e, i) &&
		    (style != STYLE_SHORT || is_short(e->scope, label->name)))
			listing_add_label(&l->text,
					  style == STYLE_INFO ? info_name(label->name) : label->name,
					  style == STYLE_DCGM ? dcgm_value(label, room) : label->value);
	}
	if (style != STYLE_SHORT)
		listing_add_label(&l->text, "hostname", hostname);
	text_add_bytes(&l->text, "", 1);
	return at;
}

static void label_item(struct listing *l, struct listed *x, const char *hostname)
{
	x->labels = x->dcgm_labels = x->info_labels = add_labels(l, x->entity, hostname, STYLE_SHORT);
	if (x->entity->scope != METRIC_SCOPE_GPU)
		return;
	x->dcgm_labels = add_labels(l, x->entity, hostname, STYLE_DCGM);
	x->info_labels = add_labels(l, x->entity, hostname, STYLE_INFO);
}

const char *listing_labels(const struct listing *l, size_t at)
{
	return l->text.data + at;
}

/* ---- which entities ---- */

static double value_or_zero(const struct watch_entity *e, enum catalogue row)
{
	const struct watch_value *v = watch_get(e, row);

	return v && isfinite(v->value) ? v->value : 0;
}

static double weight_of(const struct watch_entity *e)
{
	if (e->scope == METRIC_SCOPE_PROCESS)
		return value_or_zero(e, CATALOGUE_PROCESS_MEMORY);
	if (e->scope == METRIC_SCOPE_XID)
		return value_or_zero(e, CATALOGUE_XID_COUNT);
	return 0;
}

static const char *group_of(const struct watch_entity *e)
{
	const char *gpu = limits[e->scope].per_gpu ? watch_label(e, "gpu") : NULL;

	return gpu ? gpu : "";
}

static int by_weight(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int group;

	if (x->entity->scope != y->entity->scope)
		return x->entity->scope < y->entity->scope ? -1 : 1;
	group = strcmp(x->group, y->group);
	if (group)
		return group;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->entity->id < y->entity->id ? -1 : x->entity->id > y->entity->id;
}

static size_t limit_of(enum metric_scope scope, const struct page_spec *spec)
{
	if (scope == METRIC_SCOPE_PROCESS && spec->processes)
		return spec->processes;
	return limits[scope].most ? limits[scope].most : SIZE_MAX;
}

static size_t series_of(const struct watch_entity *e)
{
	enum catalogue row = catalogue_first(e->scope), end = row + catalogue_scope_rows(e->scope);
	size_t count = 0;

	for (; row < end; row++)
		count += watch_get(e, row) != NULL;
	return count;
}

/* Keeps the first items of each group. Returns how many stay. */
static size_t cut(struct listing *l, size_t count, const struct page_spec *spec)
{
	size_t kept = 0, same = 0;

	for (size_t i = 0; i < count; i++) {
		const struct listed *x = &l->item[i];
		enum metric_scope scope = x->entity->scope;

		same = i && x[-1].entity->scope == scope && !strcmp(x[-1].group, x->group) ? same + 1 : 0;
		if (same >= limit_of(scope, spec))
			l->left_out[scope] += series_of(x->entity);
		else
			l->item[kept++] = *x; /* kept <= i, so x[-1] is still the item before x */
	}
	return kept;
}

struct order {
	const struct listing *l;
	size_t item;
};

static int by_labels(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	const struct listed *p = &x->l->item[x->item], *q = &y->l->item[y->item];
	int order;

	if (p->entity->scope != q->entity->scope)
		return p->entity->scope < q->entity->scope ? -1 : 1;
	order = strcmp(listing_labels(x->l, p->labels), listing_labels(y->l, q->labels));
	if (order)
		return order;
	return p->entity->id > q->entity->id ? -1 : p->entity->id < q->entity->id; /* the newer one first */
}

/* Sorts by scope and labels. If several entities have the same labels, the newest one stays: Prometheus
 * refuses a series that appears twice. */
static bool sort_and_unite(struct listing *l, size_t *count)
{
	struct order *order = calloc(*count + 1, sizeof(*order));
	struct listed *sorted = calloc(*count + 1, sizeof(*sorted));
	size_t kept = 0;

	if (!order || !sorted) {
		free(order);
		free(sorted);
		return false;
	}
	for (size_t i = 0; i < *count; i++)
		order[i] = (struct order){.l = l, .item = i};
	qsort(order, *count, sizeof(*order), by_labels);
	for (size_t i = 0; i < *count; i++) {
		const struct listed *x = &l->item[order[i].item], *last = kept ? &sorted[kept - 1] : NULL;

		if (!last || last->entity->scope != x->entity->scope ||
		    strcmp(listing_labels(l, last->labels), listing_labels(l, x->labels)))
			sorted[kept++] = *x;
	}
	free(order);
	free(l->item);
	l->item = sorted;
	*count = kept;
	return true;
}

static void find_scopes(struct listing *l, size_t count)
{
	size_t at = 0;

	for (unsigned scope = 0; scope < METRIC_SCOPE_COUNT; scope++) {
		l->begin[scope] = at;
		while (at < count && l->item[at].entity->scope == scope)
			at++;
	}
	l->begin[METRIC_SCOPE_COUNT] = count;
}

bool listing_make(struct listing *l, const struct watch_state *s, const struct page_spec *spec)
{
	size_t count = 0;

	*l = (struct listing){.item = calloc(s->count + 1, sizeof(*l->item))};
	if (!l->item)
		return false;
	for (size_t i = 0; i < s->count; i++) {
		const struct watch_entity *e = &s->entity[i];

		if (e->scope == METRIC_SCOPE_COUNT || e->foreign)
			continue;
		l->item[count++] = (struct listed){.entity = e,
						   .age = watch_age(s, e, spec->local_ns),
						   .weight = weight_of(e),
						   .group = group_of(e)};
	}
	qsort(l->item, count, sizeof(*l->item), by_weight);
	count = cut(l, count, spec);
	for (size_t i = 0; i < count; i++)
		label_item(l, &l->item[i], s->node);
	if (l->text.failed || !sort_and_unite(l, &count))
		return false;
	find_scopes(l, count);
	return true;
}

void listing_release(struct listing *l)
{
	free(l->item);
	text_release(&l->text);
	*l = (struct listing){0};
}
