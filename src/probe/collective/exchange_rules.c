/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank sends what to which rank, and how a wrong element is described; the same for all engines.
 * Pure. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "probe/collective/collective.h"

enum collective_rule collective_rule_of(const struct collective_opts *o)
{
	static const enum collective_rule rules[] = {COLLECTIVE_SUM, COLLECTIVE_MIN, COLLECTIVE_MAX,
						     COLLECTIVE_AVG};

	return collective_reduces(o->op) ? rules[o->reduce] : COLLECTIVE_MOVE;
}

unsigned collective_parts_given(const struct collective_member *at)
{
	return at->opts->op == COLLECTIVE_ALL_TO_ALL ? at->size : 1;
}

struct collective_part collective_part_given(const struct collective_member *at, unsigned i)
{
	struct collective_part p = {.from = at->rank, .count = at->shape->send};

	if (at->opts->op == COLLECTIVE_ALL_TO_ALL) {
		p.count = at->shape->count;
		p.offset = i * p.count;
		p.to = i;
	} else if (at->opts->op == COLLECTIVE_SEND_RECV) {
		p.to = (at->rank + 1) % at->size;
	}
	return p;
}

unsigned collective_parts(const struct collective_member *at)
{
	bool by_sender = at->opts->op == COLLECTIVE_ALL_GATHER || at->opts->op == COLLECTIVE_ALL_TO_ALL;

	if (at->opts->op == COLLECTIVE_REDUCE && at->rank != at->opts->root)
		return 0; /* this rank receives nothing */
	return by_sender ? at->size : 1;
}

struct collective_part collective_part(const struct collective_member *at, unsigned i)
{
	struct collective_part p = {.count = at->shape->count};

	switch ((enum collective_op)at->opts->op) {
	case COLLECTIVE_ALL_GATHER:
		p.from = i;
		p.offset = i * p.count;
		break;
	case COLLECTIVE_ALL_TO_ALL:
		p.from = i;
		p.to = at->rank;
		p.offset = i * p.count;
		break;
	case COLLECTIVE_REDUCE_SCATTER:
		p.first = at->rank * p.count;
		break;
	case COLLECTIVE_BROADCAST:
		p.from = at->opts->root;
		break;
	case COLLECTIVE_SEND_RECV:
		p.from = (at->rank + at->size - 1) % at->size;
		p.to = at->rank;
		break;
	default:
		break;
	}
	return p;
}

void collective_place_wrong(const struct collective_inputs *in, const struct collective_part *p, uint64_t at,
			    const void *element, struct wrong *w)
{
	uint64_t moved =
		in->rule == COLLECTIVE_MOVE ? collective_moved(in, p->from, p->to, p->first + at) : 0;
	size_t end;

	w->first_index = p->offset + at;
	w->found = collective_number(in->type, element);
	w->expected = in->rule == COLLECTIVE_MOVE ? collective_number(in->type, &moved)
						  : collective_answer(in, p->first + at);
	snprintf(w->place, sizeof(w->place), "element %" PRIu64, w->first_index);
	end = strlen(w->place);
	if (in->rule == COLLECTIVE_MOVE && in->ranks > 2)
		snprintf(w->place + end, sizeof(w->place) - end, ", from rank %u", p->from);
}

enum {
	BLAME_LEAST =
		16 /* wrong elements: with fewer, the differences may match some rank's share by chance */
};

void collective_blame(const struct collective_inputs *in, const unsigned long long *suspect, struct wrong *w)
{
	unsigned rank = 0;
	bool twice = false;
	size_t at = strlen(w->place);

	if (in->rule == COLLECTIVE_MOVE || w->count < BLAME_LEAST ||
	    !collective_suspect(suspect, in->ranks, &rank, &twice))
		return;
	snprintf(w->place + at, sizeof(w->place) - at, ": rank %u's share is %s", rank,
		 twice ? "in it twice" : "missing");
	w->suspect = 1 + rank;
}

void collective_blame_sender(const struct collective_inputs *in, const struct collective_part *p,
			     uint64_t wrong, struct wrong *w)
{
	if (in->rule == COLLECTIVE_MOVE && wrong)
		w->suspect = w->count && w->suspect != 1 + p->from ? 0 : 1 + p->from;
}

enum status collective_mismatch(const struct collective_opts *o, const struct wrong *w, struct error *err)
{
	return error_set_cause(err, STATUS_MISMATCH, CAUSE_WRONG_RESULT,
			       "collective: %s: %" PRIu64 " of %" PRIu64
			       " elements are wrong, the first is at %s: expected %g, found %g",
			       collective_op_name(o->op), w->count, w->checked, w->place, w->expected,
			       w->found);
}
