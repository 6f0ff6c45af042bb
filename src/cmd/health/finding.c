/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/finding.h"
#include <stdarg.h>
#include <stdio.h>
#include "cmd/shared/judged.h"
#include "core/text/text.h"
#include "judge/exit.h"

bool health_is_hardware(enum cause cause)
{
	switch (cause) {
	case CAUSE_ECC:
	case CAUSE_REMAP_PENDING:
	case CAUSE_REMAP_FAILED:
	case CAUSE_RETIRED_PAGES:
	case CAUSE_RECOVERY_ACTION:
	case CAUSE_XID:
	case CAUSE_THERMAL_HW:
	case CAUSE_TEMPERATURE_STOP:
	case CAUSE_POWER_BRAKE:
	case CAUSE_PCIE_WIDTH:
	case CAUSE_PCIE_ERRORS:
	case CAUSE_NVLINK_COUNT:
	case CAUSE_GPU_MISSING:
	case CAUSE_GPU_LOST:
	case CAUSE_WRONG_RESULT:
	case CAUSE_NAN:
	case CAUSE_HBM_DATA:
		return true;
	default: /* settings, software, permissions, figures */
		return false;
	}
}

static int weight(enum health_verdict verdict, bool hardware)
{
	return verdict == HEALTH_PASS ? 0 : verdict == HEALTH_UNKNOWN ? 1 : hardware ? 3 : 2;
}

void health_finding_add(struct health_finding *f, enum health_verdict verdict, enum cause cause,
			bool hardware, const char *part, const char *format, ...)
{
	va_list args;

	if (weight(verdict, hardware) < weight(f->verdict, f->hardware) ||
	    (*f->text && weight(verdict, hardware) == weight(f->verdict, f->hardware)))
		return;
	f->verdict = verdict;
	f->hardware = verdict == HEALTH_FAIL && hardware;
	f->cause = cause;
	text_copy(f->part, sizeof(f->part), part && *part ? part : HEALTH_NODE);
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
}

bool health_finding_looked(const struct health_finding *f, const char *part)
{
	for (size_t i = 0; i < f->looked_count; i++)
		if (!strcmp(f->looked[i], part))
			return true;
	return false;
}

static void look(struct health_finding *f, const char *part)
{
	if (f->looked_count < HEALTH_PARTS && !health_finding_looked(f, part))
		text_copy(f->looked[f->looked_count++], HEALTH_PART, part);
}

/* The part that a case is about: the GPU that the judge names, else the case's only GPU, else the node. */
static const char *part_of(const struct judged *j, size_t i)
{
	const struct judgement *verdict = &j->judgements.of_case[i];
	const char *target = j->record.cases[i].target;
	const struct gpu *g;
	char *end;

	if (*verdict->part)
		return verdict->part;
	if (strncmp(target, "gpu", 3) != 0)
		return HEALTH_NODE;
	g = j->machine ? machine_gpu(j->machine, (unsigned)strtoul(target + 3, &end, 10)) : NULL;
	return g && !*end && *g->pci ? g->pci : HEALTH_NODE;
}

void health_finding_take(struct health_finding *f, const struct judged *j)
{
	const struct judgements *all = &j->judgements;
	size_t warnings = 0;
	const char *first = NULL;

	if (all->has_stated && all->stated.verdict == VERDICT_FAIL)
		health_finding_add(f, HEALTH_FAIL, all->stated.cause, health_is_hardware(all->stated.cause),
				   HEALTH_NODE, "the machine is not as stated: %s", all->stated.reason);
	for (size_t i = 0; i < all->count; i++) {
		const struct judgement *v = &all->of_case[i];
		const struct record_case *c = &j->record.cases[i];
		int code = exit_of_case(v, c->require, c->require_said);

		if (v->superseded)
			continue;
		if (v->verdict == VERDICT_FAIL)
			health_finding_add(f, HEALTH_FAIL, v->cause, health_is_hardware(v->cause),
					   part_of(j, i), "%s: %s", cause_name(v->cause), v->reason);
		else if (code == 2)
			health_finding_add(f, HEALTH_UNKNOWN, v->cause, false, part_of(j, i), "%s: %s: %s",
					   c->probe, cause_name(v->cause), v->reason);
		if (v->verdict == VERDICT_PASS || v->verdict == VERDICT_WARN || v->verdict == VERDICT_FAIL)
			look(f, part_of(j, i));
		/* Other work on the node is no fault of the node. */
		if (v->verdict == VERDICT_WARN && v->cause != CAUSE_BUSY && v->cause != CAUSE_CPU_CONTENDED &&
		    !warnings++)
			first = v->reason;
	}
	if (all->exit_code == EXIT_INCONCLUSIVE) /* for example, nothing was read */
		health_finding_add(f, HEALTH_UNKNOWN, CAUSE_NONE, false, HEALTH_NODE, "%s", all->headline);
	if (warnings)
		health_finding_add(f, HEALTH_PASS, CAUSE_NONE, false, HEALTH_NODE, "%zu warning%s, first: %s",
				   warnings, warnings == 1 ? "" : "s", first);
	else
		health_finding_add(f, HEALTH_PASS, CAUSE_NONE, false, HEALTH_NODE, "%zu readings, no fault",
				   all->count);
}
