/* SPDX-License-Identifier: Apache-2.0 */
#include "run/suite/target_team.h"
#include <ctype.h>
#include "core/text/text.h"
#include "run/probe.h"
#include "team/control/control.h"

/* -- lists of members -- */

void members_add(uint64_t member[TARGET_MEMBERS / 64], unsigned n)
{
	member[n / 64] |= (uint64_t)1 << (n % 64);
}

bool members_have(const uint64_t member[TARGET_MEMBERS / 64], unsigned n)
{
	return n < TARGET_MEMBERS && member[n / 64] >> (n % 64) & 1;
}

unsigned members_count(const uint64_t member[TARGET_MEMBERS / 64])
{
	unsigned count = 0;

	for (unsigned i = 0; i < TARGET_MEMBERS / 64; i++)
		count += (unsigned)__builtin_popcountll(member[i]);
	return count;
}

unsigned members_first(const uint64_t member[TARGET_MEMBERS / 64])
{
	for (unsigned n = 0; n < TARGET_MEMBERS; n++)
		if (members_have(member, n))
			return n;
	return 0;
}

bool members_text(char *out, size_t size, const uint64_t member[TARGET_MEMBERS / 64])
{
	size_t used = 0;

	*out = '\0';
	for (unsigned n = 0; n < TARGET_MEMBERS && used < size; n++) {
		unsigned last = n;

		if (!members_have(member, n))
			continue;
		while (members_have(member, last + 1))
			last++;
		used += (size_t)snprintf(out + used, size - used, "%s%u", used ? "," : "", n);
		if (last > n && used < size)
			used += (size_t)snprintf(out + used, size - used, "%c%u", last > n + 1 ? '-' : ',',
						 last);
		n = last;
	}
	return used < size;
}

/* Reads a number and moves *text behind it; -1: no number, or not below `most`. */
static long number_at(const char **text, unsigned most)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)**text))
		return -1;
	n = strtoul(*text, &end, 10);
	*text = end;
	return n < most ? (long)n : -1;
}

bool members_parse(uint64_t member[TARGET_MEMBERS / 64], const char *text, unsigned most, long *twice)
{
	memset(member, 0, TARGET_MEMBERS / 8);
	if (most > TARGET_MEMBERS)
		most = TARGET_MEMBERS;
	for (;;) {
		long first = number_at(&text, most), last = first;

		if (first >= 0 && *text == '-') {
			text++;
			last = number_at(&text, most);
		}
		if (first < 0 || last < first)
			return false;
		for (long n = first; n <= last; n++) {
			if (members_have(member, (unsigned)n)) {
				*twice = n;
				return false;
			}
			members_add(member, (unsigned)n);
		}
		if (!*text)
			return true;
		if (*text++ != ',')
			return false;
	}
}

/* -- the rank that runs a case -- */

bool target_takes(const struct target *t, unsigned rank)
{
	return !members_count(t->member) || members_have(t->member, rank);
}

bool target_shared(const struct target *t, const struct engine *e, const struct plan_options *wishes)
{
	if (!e || !wishes || !wishes->team || wishes->team->size < 2)
		return false;
	return t->kind == TARGET_TEAM || (t->kind == TARGET_NODE && e->launched);
}

/* Indices of this rank's GPUs. Returns their number. */
static unsigned target_own_gpus(uint16_t gpu[TARGET_GPUS], const struct machine *m,
				const struct plan_options *wishes)
{
	const struct team_rank *own = &wishes->team->rank[wishes->rank];
	unsigned count = 0;

	for (unsigned i = 0; i < own->gpu_count; i++)
		for (unsigned g = 0; g < machine_gpu_count(m) && count < TARGET_GPUS; g++)
			if (!strcmp(machine_gpu(m, g)->pci, own->pci[i]))
				gpu[count++] = (uint16_t)g;
	return count;
}

enum status target_mine(const struct target *t, const struct machine *m, const struct plan_options *wishes,
			struct error *why)
{
	const struct team_shape *team = wishes ? wishes->team : NULL;
	uint16_t own[TARGET_GPUS];
	unsigned count, node, leader;

	if (!team || team->size < 2)
		return STATUS_OK;
	node = team->rank[wishes->rank].node;
	leader = team->node[node].leader;
	if (t->kind == TARGET_GPU && t->gpu_count) {
		count = target_own_gpus(own, m, wishes);
		for (unsigned i = 0; i < count; i++)
			if (own[i] == t->gpu[0])
				return STATUS_OK;
		/* a GPU that no rank has is measured by the node's lowest rank */
		if (leader == wishes->rank &&
		    !control_gpu_ranks(team, node, machine_gpu(m, t->gpu[0])->pci, NULL, NULL))
			return STATUS_OK;
		return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED,
				       "gpu%u does not belong to rank %u", t->gpu[0], wishes->rank);
	}
	if (leader == wishes->rank)
		return STATUS_OK;
	return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED,
			       "rank %u runs this case for this node", leader);
}

/* Whether the team's ranks are on this node and use exactly these GPUs, one each. */
static bool team_has(const struct target *team, const struct target *gpus, const struct machine *m,
		     const struct plan_options *wishes)
{
	const struct team_shape *s = wishes ? wishes->team : NULL;
	unsigned node = s ? s->rank[wishes->rank].node : 0, ranks = 0, found = 0;

	for (unsigned r = 0; s && r < s->size; r++) {
		if (!target_takes(team, r))
			continue;
		ranks++;
		for (unsigned g = 0; s->rank[r].node == node && g < gpus->gpu_count; g++)
			found += s->rank[r].gpu_count == 1 &&
				 !strcmp(s->rank[r].pci[0], machine_gpu(m, gpus->gpu[g])->pci);
	}
	return found == ranks && ranks == gpus->gpu_count;
}

bool target_same_gpus(const struct target *a, const struct target *b, const struct machine *m,
		      const struct plan_options *wishes)
{
	if (!a->gpu_count || !b->gpu_count)
		return false;
	if (a->kind == TARGET_NODE && b->kind == TARGET_TEAM)
		return team_has(b, a, m, wishes);
	if (a->kind == TARGET_TEAM && b->kind == TARGET_NODE)
		return team_has(a, b, m, wishes);
	return a->kind == b->kind && (a->kind == TARGET_GPU || a->kind == TARGET_NODE) &&
	       a->gpu_count == b->gpu_count && !memcmp(a->gpu, b->gpu, a->gpu_count * sizeof(*a->gpu));
}

enum status target_unshared(const struct target *t, bool reads, const struct machine *m,
			    const struct plan_options *wishes, struct error *why)
{
	const struct team_shape *team = wishes ? wishes->team : NULL;
	unsigned node = team ? team->rank[wishes->rank].node : 0, lowest = 0;
	enum status st = STATUS_OK;

	for (unsigned i = 0; team && i < t->gpu_count && !st; i++) {
		const char *pci = machine_gpu(m, t->gpu[i])->pci;
		struct text names = {0};
		unsigned ranks = control_gpu_ranks(team, node, pci, &lowest, &names);

		if (ranks > 1 && !reads)
			st = error_set_cause(why, STATUS_UNAVAILABLE, CAUSE_GPU_SHARED,
					     "ranks %s of %s all have the GPU %s", text_str(&names),
					     team->node[node].shown, pci);
		else if (ranks > 1 && lowest != wishes->rank && t->kind == TARGET_GPU)
			st = error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED,
					     "rank %u reads this GPU for ranks %s", lowest, text_str(&names));
		text_release(&names);
	}
	return st;
}

/* Number of GPUs of the target's ranks. Each rank knows it. */
static unsigned gpus_of_ranks(const struct target *t, const struct team_shape *team)
{
	unsigned gpus = 0;

	for (unsigned r = 0; r < team->size; r++)
		gpus += target_takes(t, r) ? team->rank[r].gpu_count : 0;
	return gpus;
}

bool target_fits(const struct target *t, const struct engine *e, const struct plan_options *wishes)
{
	const struct team_shape *team = wishes ? wishes->team : NULL;

	if (!team || team->size < 2)
		return !e->launched;
	if (t->kind != TARGET_NODE && t->kind != TARGET_TEAM)
		return true;
	/* On a node, two GPUs or more work together. In a team one GPU is enough: ranks without a GPU get a
	 * reason. */
	return e->launched == (gpus_of_ranks(t, team) < (t->kind == TARGET_NODE ? 2 : 1));
}

/* -- number of ranks -- */

static enum status ranks_of_gpus(struct target *t, const struct machine *m, struct error *why)
{
	if (t->gpu_count > 1) {
		t->ranks = t->gpu_count;
		return STATUS_OK;
	}
	if (!machine_gpu_count(m))
		return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
				       "no NVIDIA GPU on the PCI bus");
	return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
			       t->gpu_count ? "one GPU: a collective needs two"
					    : "no GPU of this node can be used");
}

/* A rank of a team with GPUs works on one GPU of its own. */
static enum status own_gpu(struct target *t, const struct machine *m, const struct plan_options *wishes,
			   struct error *why)
{
	uint16_t own[TARGET_GPUS];
	unsigned count = target_own_gpus(own, m, wishes);

	if (count == 1) {
		t->gpu[0] = own[0];
		t->gpu_count = 1;
		return STATUS_OK;
	}
	if (!count && gpus_of_ranks(t, wishes->team))
		return error_set_cause(
			why, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
			"rank %u has no GPU, but other ranks have: use an engine that needs no GPU",
			wishes->rank);
	if (!machine_gpu_count(m))
		return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
				       "no NVIDIA GPU on the PCI bus");
	if (!count)
		return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE, "rank %u has no GPU",
				       wishes->rank);
	return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
			       "rank %u has %u GPUs: launch a rank for each", wishes->rank, count);
}

enum status target_ranks(struct target *t, const struct engine *e, const struct machine *m,
			 const struct plan_options *wishes, struct error *why)
{
	const struct team_shape *team = wishes ? wishes->team : NULL;
	unsigned members = members_count(t->member);

	if (!e || (t->kind != TARGET_NODE && t->kind != TARGET_TEAM))
		return STATUS_OK;
	if (t->kind == TARGET_NODE && !e->launched)
		return ranks_of_gpus(t, m, why);
	if ((!team || team->size < 2) && e->launched)
		return error_set_cause(
			why, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			"one process, but engine %s needs several: assay launch --how mpirun -- check quick starts "
			"them (without assay launch: mpirun -n 4 --bind-to none assay .., with --oversubscribe beyond the cores and "
			"--allow-run-as-root as root)",
			e->name);
	if (!team || team->size < 2)
		return error_set_cause(
			why, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED,
			"one process: target team needs several (assay launch, torchrun, srun, mpirun)");
	if (t->kind == TARGET_NODE && team->nodes > 1)
		return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED,
				       "ranks on %u nodes: use target team for all of them", team->nodes);
	if (members && !members_have(t->member, 0))
		return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "rank 0 leads the case, so the target must contain it");
	if (members == 1)
		return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED,
				       "one rank: a team case needs two");
	if (e->once && members && members < team->size)
		return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "engine %s starts on all %u launched ranks together: use target team",
				       e->name, team->size);
	t->ranks = members ? members : team->size;
	if (!target_takes(t, wishes->rank))
		return error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED,
				       "rank %u is not in this target", wishes->rank);
	return e->launched ? STATUS_OK : own_gpu(t, m, wishes, why);
}
