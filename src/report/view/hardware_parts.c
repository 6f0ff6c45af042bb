/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that a ticket can name: GPUs and the two ends of a pair, each with its worst finding. */
#include "report/view/build.h"
#include "report/text/format.h"

/* True for causes that justify a ticket although the case did not fail. */
static bool is_hardware(enum cause cause)
{
	switch (cause) {
	case CAUSE_WRONG_RESULT:
	case CAUSE_NAN:
	case CAUSE_HBM_DATA:
	case CAUSE_SLOW_SM:
	case CAUSE_POWER_BRAKE:
	case CAUSE_THERMAL_SW:
	case CAUSE_THERMAL_HW:
	case CAUSE_TEMPERATURE_STOP:
	case CAUSE_PCIE_WIDTH:
	case CAUSE_PCIE_GEN:
	case CAUSE_PCIE_ERRORS:
	case CAUSE_NVLINK_COUNT:
	case CAUSE_NVLINK_ERRORS:
	case CAUSE_LINK_SLOW:
	case CAUSE_SLOW_RANK:
	case CAUSE_NODE_SLOW:
	case CAUSE_SIBLING_OUTLIER:
	case CAUSE_ECC:
	case CAUSE_REMAP_PENDING:
	case CAUSE_REMAP_FAILED:
	case CAUSE_RETIRED_PAGES:
	case CAUSE_RECOVERY_ACTION:
	case CAUSE_XID:
		return true;
	default:
		return false;
	}
}

bool view_for_ticket(const struct judgement *j)
{
	if (j->cause == CAUSE_FLEET_LOW) /* about all GPUs: no part needs to be replaced */
		return false;
	return j->verdict == VERDICT_FAIL || j->verdict == VERDICT_ERROR ||
	       ((j->verdict == VERDICT_WARN || j->verdict == VERDICT_UNTRUSTED) && is_hardware(j->cause));
}

/* Sets both GPUs of a pair, or the one GPU that the finding names. */
static void part_of_pair(struct view_part *part, const struct machine *m)
{
	const char *accused = part->row->j->part;
	unsigned from, to;

	if (!m || sscanf(part->row->c->target, "gpu%u>gpu%u", &from, &to) != 2)
		return;
	part->gpu = machine_gpu(m, from);
	part->peer = machine_gpu(m, to);
	if (!part->gpu || !part->peer || !*accused)
		return;
	if (!strcmp(part->peer->pci, accused))
		part->gpu = part->peer;
	part->peer = NULL;
}

void view_part_text(char *out, size_t size, const struct view_part *p, enum part_column column)
{
	const char *own = column == PART_PCI ? p->gpu->pci : column == PART_SLOT ? p->gpu->slot : p->serial;
	const char *peer = !p->peer		 ? NULL
			   : column == PART_PCI	 ? p->peer->pci
			   : column == PART_SLOT ? p->peer->slot
						 : p->peer_serial;

	snprintf(out, size, "%s%s%s%s%s", column == PART_PCI ? p->node : "",
		 column == PART_PCI && *p->node ? "/" : "", *own ? own : FORMAT_NONE, peer ? " > " : "",
		 !peer	 ? ""
		 : *peer ? peer
			 : FORMAT_NONE);
}

static void copy_serial(struct view *v, char *out, size_t size, const struct gpu *g)
{
	if (g && g->serial[0])
		pseudonym_map_copy(&v->names, out, size, g->serial);
}

void view_parts_build(struct view *v)
{
	for (size_t g = 0; g < v->group_count; g++) {
		const struct view_group *group = &v->groups[g];
		struct view_part *part = &v->parts[v->part_count];

		*part = (struct view_part){.gpu = group->gpu};
		for (size_t i = group->first; i < group->first + group->count; i++) {
			const struct view_row *row = &v->rows[i];

			if (view_for_ticket(row->j) &&
			    (!part->row || view_badness(row->j->verdict) < view_badness(part->verdict))) {
				part->row = row;
				part->verdict = row->j->verdict;
			}
		}
		if (!part->row)
			continue;
		if (!part->gpu)
			part_of_pair(part, view_machine(v, part->row->c));
		if (!part->gpu)
			continue;
		part->cause = part->row->j->cause;
		view_node_name(part->node, sizeof(part->node), v, part->row->c->node);
		copy_serial(v, part->serial, sizeof(part->serial), part->gpu);
		copy_serial(v, part->peer_serial, sizeof(part->peer_serial), part->peer);
		v->part_count++;
	}
}
