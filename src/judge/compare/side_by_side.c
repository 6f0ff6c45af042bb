/* SPDX-License-Identifier: Apache-2.0 */
/* Few machines: puts each case of the first machine next to the same case of every other one, as ratios
 * without a verdict. */
#include "judge/compare/compare.h"
#include "core/text/text.h"
#include "judge/expect/expect.h"

/* Finds the comparable case of `run` with the same work on the same target, judged in the same phase; NULL:
 * none. */
static const struct judgement *partner(const struct compare_run *run, const struct record_case *c,
				       const struct judgement *j)
{
	for (size_t i = 0; i < run->record->case_count; i++) {
		const struct record_case *other = &run->record->cases[i];
		const struct judgement *k = &run->judged->of_case[i];

		if (!strcmp(other->key, c->key) && !strcmp(other->where, c->where) &&
		    other->together == c->together && compare_fit(k) && !strcmp(k->phase, j->phase) &&
		    !strcmp(k->figure_unit, j->figure_unit))
			return k;
	}
	return NULL;
}

static enum status pair(struct comparison *out, const struct record_case *c, const struct judgement *first,
			const struct judgement *other, const char *run, struct error *err)
{
	struct compare_pair *p = expect_push(&out->pair, &out->pair_count, sizeof(*p), err);

	if (!p)
		return STATUS_NO_RESOURCE;
	*p = (struct compare_pair){
		.c = c,
		.run = run,
		.first = first->figure,
		.other = other->figure,
		.ratio = other->figure / first->figure,
	};
	text_copy(p->unit, sizeof(p->unit), first->figure_unit);
	text_copy(p->phase, sizeof(p->phase), first->phase);
	return STATUS_OK;
}

enum status compare_side(struct comparison *out, const struct compare_run *runs, size_t count,
			 struct error *err)
{
	const struct record *first = runs[0].record;
	enum status status = STATUS_OK;

	for (size_t run = 1; run < count; run++)
		for (size_t i = 0; i < first->case_count && !status; i++) {
			const struct record_case *c = &first->cases[i];
			const struct judgement *j = &runs[0].judged->of_case[i], *other;

			/* A repeated case is listed once. */
			if (!compare_fit(j) || partner(&runs[0], c, j) != j)
				continue;
			other = partner(&runs[run], c, j);
			if (other)
				status = pair(out, c, j, other, runs[run].name, err);
		}
	return status;
}
