/* SPDX-License-Identifier: Apache-2.0 */
/* Matches the launches of all ranks. All ranks call the collectives of a communicator in the same order, so
 * the i-th launch of one rank is the i-th launch of each other rank. If the first events of a process were
 * overwritten, launches are counted from the end. If events are missing in between, launches are not matched.
 */
#include "profile/nccl/internal.h"

struct pairing {
	const struct timeline *t;
	struct nccl *n;
	uint32_t *order; /* collective launches, sorted by communicator, process, device and start */
	size_t count;
};

/* The range of one rank's launches of a communicator in `order`. */
struct member {
	size_t first, count;
};
enum { MEMBERS_MAX = 4096 };

uint32_t nccl_own_rank(const struct timeline *t, uint64_t comm, uint16_t process)
{
	for (size_t i = 0; i < t->comms; i++)
		if (t->comm[i].id == comm && t->comm[i].process == process)
			return t->comm[i].rank;
	return TIMELINE_NONE;
}

/* Number of processes that reported the communicator, and the number of ranks that they reported. A
 * communicator that is reported again at its end counts once. */
static uint32_t tellers(const struct timeline *t, uint64_t comm, uint32_t *ranks)
{
	uint32_t count = 0;
	uint16_t last = UINT16_MAX;

	*ranks = 0;
	for (size_t i = 0; i < t->comms; i++) { /* grouped by process */
		if (t->comm[i].id != comm)
			continue;
		count += t->comm[i].process != last;
		last = t->comm[i].process;
		*ranks = t->comm[i].split ? 0 : t->comm[i].ranks;
	}
	return count;
}

uint32_t nccl_ranks(const struct timeline *t, uint64_t comm)
{
	uint32_t ranks, count = tellers(t, comm, &ranks), parents, all;
	uint64_t parent = 0;

	if (ranks || !count)
		return ranks;
	for (size_t i = 0; i < t->comms && !parent; i++)
		parent = t->comm[i].id == comm ? t->comm[i].parent : 0;
	/* For a communicator that was split off: once all ranks of its parent are in the profile, every
	 * process that reported it is in it. */
	parents = parent ? tellers(t, parent, &all) : 0;
	return parents && parents == all ? count : 0;
}

static int by_rank(const void *a_, const void *b_, void *arg)
{
	const struct nccl *n = arg;
	const struct nccl_launch *a = &n->launch[*(const uint32_t *)a_],
				 *b = &n->launch[*(const uint32_t *)b_];

	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static struct nccl_launch *at(const struct pairing *p, size_t i)
{
	return &p->n->launch[p->order[i]];
}

/* Collects the ranks whose launches lie in [first, end). */
static size_t find_members(const struct pairing *p, size_t first, size_t end, struct member *m)
{
	size_t count = 0;

	for (size_t i = first; i < end; i++) {
		const struct nccl_launch *l = at(p, i), *before = i > first ? at(p, i - 1) : NULL;

		if (!before || before->process != l->process || before->device != l->device) {
			if (count == MEMBERS_MAX)
				return 0;
			m[count++] = (struct member){.first = i};
		}
		m[count - 1].count++;
	}
	return count;
}

static bool is_whole(const struct timeline_process *p, bool from_end)
{
	return !p->dropped && !p->dropped_cupti && !p->left_out && (from_end ? p->closed : !p->overwritten);
}

static bool all_whole(const struct pairing *p, const struct member *m, size_t members, bool from_end)
{
	for (size_t i = 0; i < members; i++)
		if (!is_whole(&p->t->process[at(p, m[i].first)->process], from_end))
			return false;
	return true;
}

/* Matches one launch of each rank. Returns false if the operations differ, or if one had ended before the
 * last one began. */
static bool pair_up(const struct pairing *p, size_t members, const size_t *index)
{
	const struct nccl_launch *one = at(p, index[0]);
	uint64_t ready_ns = 0, fastest_ns = UINT64_MAX, waited_ns;

	for (size_t i = 0; i < members; i++) {
		const struct nccl_launch *l = at(p, index[i]);

		if (l->operation != one->operation || l->size != one->size || l->calls != one->calls)
			return false;
		ready_ns = l->start_ns > ready_ns ? l->start_ns : ready_ns;
		if (l->end_ns - l->start_ns < fastest_ns)
			fastest_ns = l->end_ns - l->start_ns;
	}
	for (size_t i = 0; i < members; i++) {
		struct nccl_launch *l = at(p, index[i]);

		waited_ns = l->end_ns - l->start_ns - fastest_ns;
		if (ready_ns - l->start_ns < waited_ns)
			waited_ns = ready_ns - l->start_ns;
		l->ready_ns = l->start_ns + waited_ns;
		l->fastest_ns = fastest_ns;
		l->paired = true;
	}
	return true;
}

static void pair_members(const struct pairing *p, const struct member *m, size_t members, size_t *index)
{
	bool from_end = !all_whole(p, m, members, false);
	size_t least = SIZE_MAX;

	if (from_end && !all_whole(p, m, members, true))
		return;
	for (size_t i = 0; i < members; i++)
		least = m[i].count < least ? m[i].count : least;
	for (size_t k = 0; k < least; k++) {
		for (size_t i = 0; i < members; i++)
			index[i] = from_end ? m[i].first + m[i].count - 1 - k : m[i].first + k;
		if (!pair_up(p, members, index))
			return;
	}
}

static bool is_collective(const struct nccl_launch *l)
{
	return l->comm && l->operation <= NCCL_SCATTER;
}

bool nccl_pair(struct nccl *n, const struct timeline *t)
{
	struct pairing p = {.t = t, .n = n, .order = calloc(n->launches + 1, sizeof(*p.order))};
	struct member *m = calloc(MEMBERS_MAX, sizeof(*m));
	size_t *index = calloc(MEMBERS_MAX, sizeof(*index)), members;
	bool made = p.order && m && index;

	for (size_t i = 0; made && i < n->launches; i++)
		if (is_collective(&n->launch[i]))
			p.order[p.count++] = (uint32_t)i;
	if (made && p.count)
		qsort_r(p.order, p.count, sizeof(*p.order), by_rank, n);
	for (size_t i = 0, end; made && i < p.count; i = end) {
		for (end = i + 1; end < p.count && at(&p, end)->comm == at(&p, i)->comm;)
			end++;
		members = find_members(&p, i, end, m);
		if (members > 1)
			pair_members(&p, m, members, index);
	}
	free(p.order);
	free(m);
	free(index);
	return made;
}
