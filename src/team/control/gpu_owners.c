/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns GPUs to ranks, from the GPUs that each rank of a node sees, and finds ranks that share a GPU:
 * docs/explanation/design/team.md. */
#include <errno.h>
#include <limits.h>
#include "core/json/member.h"
#include "core/text/text.h"
#include "team/control/internal.h"

#define PICK_ALL UINT_MAX /* else the index of the rank's only GPU */

static bool see_the_same(const struct team_rank *a, const struct team_rank *b)
{
	if (a->gpu_count != b->gpu_count)
		return false;
	for (unsigned i = 0; i < a->gpu_count; i++)
		if (strcmp(a->pci[i], b->pci[i]))
			return false;
	return true;
}

/* Ranks that see the same GPUs divide them. If all ranks of the node see the same ones, the local rank is the
 * index. */
static unsigned pick(const struct team_shape *s, unsigned rank, const json_t *said)
{
	const struct team_rank *own = &s->rank[rank];
	unsigned local_rank = 0, local_size = 0, before = 0;
	bool alike = true;

	if (json_member_count(&local_size, said, "local_size", s->size))
		json_member_count(&local_rank, said, "local_rank", s->size);
	if (local_size == 1 || (!local_size && s->node[own->node].ranks == 1) ||
	    (own->gpu_count == 1 && json_is_true(json_object_get(said, "given"))))
		return PICK_ALL;
	for (unsigned r = 0; r < s->size; r++) {
		bool same = see_the_same(&s->rank[r], own);

		if (s->rank[r].node != own->node)
			continue;
		alike = alike && same;
		before += r < rank && same;
	}
	return alike && local_size ? local_rank : before;
}

enum status shape_own_gpus(struct team_shape *s, json_t *const *said, struct error *err)
{
	unsigned *own = calloc(s->size, sizeof(*own));

	if (!own)
		return error_errno(err, ENOMEM, "no memory to assign GPUs to %u ranks", s->size);
	for (unsigned r = 0; r < s->size; r++)
		own[r] = pick(s, r, said[r]);
	for (unsigned r = 0; r < s->size; r++) {
		struct team_rank *t = &s->rank[r];

		if (own[r] == PICK_ALL)
			continue;
		if (own[r] && own[r] < t->gpu_count)
			memcpy(t->pci[0], t->pci[own[r]], CONTROL_PCI);
		t->gpu_count = own[r] < t->gpu_count;
	}
	free(own);
	return STATUS_OK;
}

static bool has_gpu(const struct team_shape *s, unsigned rank, unsigned node, const char *pci)
{
	const struct team_rank *r = &s->rank[rank];

	for (unsigned i = 0; r->node == node && i < r->gpu_count; i++)
		if (!strcmp(r->pci[i], pci))
			return true;
	return false;
}

unsigned control_gpu_ranks(const struct team_shape *s, unsigned node, const char *pci, unsigned *lowest,
			   struct text *names)
{
	unsigned count = 0;

	for (unsigned r = 0; r < s->size; r++) {
		unsigned end = r;

		if (!has_gpu(s, r, node, pci))
			continue;
		while (end + 1 < s->size && has_gpu(s, end + 1, node, pci))
			end++;
		if (names)
			text_addf(names, end > r ? "%s%u-%u" : "%s%u", count ? ", " : "", r, end);
		if (lowest && !count)
			*lowest = r;
		count += end - r + 1;
		r = end;
	}
	return count;
}
