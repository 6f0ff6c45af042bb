/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rows of decisive fields. If a decisive field is missing, the reading is not judged, whatever else
 * was read. */
#include "judge/expect/expect.h"

static enum status feature_read(struct decisive_row *d, const struct tree *row, struct error *err)
{
	const char *name = tree_text(row, "feature", NULL);
	int f = 0;

	d->feature = SKU_FACT_COUNT;
	d->always = name && !strcmp(name, "always");
	if (!name || d->always)
		return STATUS_OK;
	while (f < SKU_FACT_COUNT && strcmp(sku_fact_name((enum sku_fact)f), name))
		f++;
	d->feature = (enum sku_fact)f;
	if (f < SKU_FACT_COUNT)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "%s:%d: no SKU has a fact %s; feature must name one, or be always", row->file,
			 row->line, name);
}

static enum status layer_read(struct decisive_row *d, const struct tree *row, struct error *err)
{
	static const char *const words[] = {"nvml", "cuda", "host"};
	const char *name = tree_text(row, "reads", "nvml");
	size_t i = 0;

	while (i < sizeof(words) / sizeof(words[0]) && strcmp(words[i], name))
		i++;
	d->reads = (enum decisive_reads)i;
	if (i < sizeof(words) / sizeof(words[0]))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: reads is %s, not nvml, cuda or host", row->file,
			 row->line, name);
}

static enum status row_read(struct decisive_row *d, const struct tree *row, const struct tree *sources,
			    struct error *err)
{
	static const char *const keys[] = {"probe",	  "field", "fact",   "feature",	   "reads",
					   "needed_when", "cause", "source", "confidence", NULL};
	const char *cause = tree_text(row, "cause", "");
	enum status status = expect_need_text(&d->probe, row, "probe", err);

	d->file = row->file;
	d->line = row->line;
	if (!status)
		status = tree_check_keys(row, keys, err);
	if (!status)
		status = expect_need_text(&d->field, row, "field", err);
	d->fact = tree_text(row, "fact", d->field);
	if (!status)
		status = feature_read(d, row, err);
	if (!status)
		status = layer_read(d, row, err);
	if (!status)
		status = expect_when(&d->needed_when, row, "needed_when", err);
	if (!status && *cause && !cause_from_name(cause, &d->cause))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: there is no cause %s", row->file, row->line,
				   cause);
	if (!status && d->reads == DECISIVE_HOST && !d->cause)
		status = error_set(err, STATUS_BAD_INPUT,
				   "%s:%d: a field of the host needs a cause for the case that it is missing",
				   row->file, row->line);
	if (!status)
		status = expect_source(&d->source, row, sources, err);
	return status;
}

enum status expect_read_decisives(struct expectations *e, const struct tree *list, const struct tree *sources,
				  struct error *err)
{
	enum status status = STATUS_OK;
	struct decisive_row *grown;
	size_t i;

	for (i = 0; i < list->count && !status; i++) {
		grown = expect_grow(e->decisive, e->decisive_count, sizeof(*grown), err);
		if (!grown)
			return STATUS_NO_RESOURCE;
		e->decisive = grown;
		status = row_read(&grown[e->decisive_count++], list->items[i], sources, err);
	}
	return status;
}

enum status expect_check_decisives(const struct expectations *e, struct error *err)
{
	size_t i, j;

	for (i = 0; i < e->decisive_count; i++)
		for (j = i + 1; j < e->decisive_count; j++) {
			const struct decisive_row *a = &e->decisive[i], *b = &e->decisive[j];

			if (!strcmp(a->probe, b->probe) && !strcmp(a->field, b->field) &&
			    when_compatible(&a->needed_when, &b->needed_when))
				return error_set(err, STATUS_BAD_INPUT,
						 "%s:%d: field %s of probe %s is already decisive (%s:%d)",
						 b->file, b->line, b->field, b->probe, a->file, a->line);
		}
	return STATUS_OK;
}
