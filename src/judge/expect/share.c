/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of the bound that healthy machines reach, for cases without an expected range: reads the rows and
 * finds the one for a case. */
#include "judge/expect/expect.h"

/* Limits of a share. Below a tenth, nearly every figure would pass. Above nine tenths, a row would claim more
 * precision than a bound has. */
#define SHARE_LEAST 0.1
#define SHARE_MOST 0.9

static enum status share_read(struct share_row *s, const struct tree *row, const struct tree *sources,
			      struct error *err)
{
	static const char *const keys[] = {"name", "when", "share", "source", "confidence", NULL};
	const struct tree *value = tree_get(row, "share");
	enum status status = expect_need_text(&s->name, row, "name", err);

	s->file = row->file;
	s->line = row->line;
	if (!status)
		status = tree_check_keys(row, keys, err);
	if (!status)
		status = expect_when(&s->when, row, "when", err);
	if (!status && (!s->when.count || !value))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: %s needs when and share", row->file,
				   row->line, s->name);
	if (!status)
		status = expect_number(&s->share, value, "", err);
	if (!status && (!(s->share >= SHARE_LEAST) || s->share > SHARE_MOST))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: share of %g is not from %g to %g",
				   row->file, row->line, s->share, SHARE_LEAST, SHARE_MOST);
	if (!status)
		status = expect_source(&s->source, row, sources, err);
	return status;
}

enum status expect_read_shares(struct expectations *e, const struct tree *list, const struct tree *sources,
			       struct error *err)
{
	enum status status = STATUS_OK;
	struct share_row *grown;
	size_t i;

	for (i = 0; i < list->count && !status; i++) {
		grown = expect_grow(e->share, e->share_count, sizeof(*grown), err);
		if (!grown)
			return STATUS_NO_RESOURCE;
		e->share = grown;
		status = share_read(&grown[e->share_count++], list->items[i], sources, err);
	}
	return status;
}

const struct share_row *expect_share(const struct expectations *e, expect_look *look, const void *arg)
{
	const struct share_row *best = NULL;
	size_t i;

	for (i = 0; i < e->share_count; i++)
		if ((!best || e->share[i].when.count > best->when.count) &&
		    when_matches(&e->share[i].when, look, arg))
			best = &e->share[i];
	return best;
}
