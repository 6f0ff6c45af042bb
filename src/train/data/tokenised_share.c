/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's token ids for all ranks. */
#include <inttypes.h>
#include <stdlib.h>
#include "train/data/tokenised.h"

/* The numbers of a set, without its arrays. */
struct head {
	uint64_t rows, tokens, targets, dropped, truncated, bad, untrained, bytes;
	double seconds;
};

static enum status make_room(struct tokenised *t, const struct head *h, struct error *err)
{
	*t = (struct tokenised){.rows = h->rows,
				.tokens = h->tokens,
				.targets = h->targets,
				.dropped = h->dropped,
				.truncated = h->truncated,
				.bad = h->bad,
				.untrained = h->untrained,
				.seconds = h->seconds};
	t->token = malloc((h->tokens + 1) * sizeof(*t->token));
	t->begin = malloc((h->rows + 1) * sizeof(*t->begin));
	return t->token && t->begin ? STATUS_OK
				    : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
						      "no memory for %" PRIu64 " tokens", h->tokens);
}

enum status tokenised_share(struct tokenised *t, const struct tokenised_ask *ask, struct comm *c,
			    struct error *err)
{
	struct head h = {0};
	enum status st = STATUS_OK;

	if (!c)
		return tokenised_read(t, ask, err);
	*t = (struct tokenised){0};
	if (!c->rank)
		st = tokenised_read(t, ask, err);
	st = comm_agree(c, st, err);
	if (st)
		goto out;
	h = (struct head){t->rows, t->tokens,	 t->targets, t->dropped, t->truncated,
			  t->bad,  t->untrained, t->bytes,   t->seconds};
	st = c->ops->share(c, &h, sizeof(h), err);
	if (!st && c->rank)
		st = make_room(t, &h, err);
	st = comm_agree(c, st, err);
	if (!st)
		st = c->ops->share(c, t->begin, (t->rows + 1) * sizeof(*t->begin), err);
	if (!st)
		st = c->ops->share(c, t->token, t->tokens * sizeof(*t->token), err);
out:
	if (st)
		tokenised_release(t);
	return st;
}
