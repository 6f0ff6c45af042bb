/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the rules of health.yaml to the fields of a case. */
#include "judge/case/verdict.h"
#include "core/text/units.h"

/* A GPU is named by its PCI address, because its index can change at every boot. */
static const char *device(const struct subject *s)
{
	return s->gpu ? s->gpu->pci : s->c->target;
}

/* Xids of the kernel log, "79@8.2 45@8.3". The first Xid of the last burst is the cause; the worst one
 * decides the verdict. */
static bool xids_before(struct judgement *out, const struct subject *s)
{
	const char *list = case_text(s->c, "xid_list");
	const struct xid_row *row, *worst = NULL;
	double first = 0;
	char *end;

	if (!list || !*list)
		return false;
	case_number(s->c, "xid_first", &first);
	for (;;) {
		long number = strtol(list, &end, 10);

		if (end == list)
			break;
		row = expect_xid(s->ctx->e, (int)number);
		if (row && (!worst || verdict_weight(row->before) > verdict_weight(worst->before)))
			worst = row;
		list = end + strcspn(end, " ");
	}
	if (worst && worst->before == VERDICT_PASS)
		return true;
	if (worst)
		finding(out, worst->before, CAUSE_XID,
			"the kernel log holds Xid %d (%s) of %s; its last burst began with Xid %.0f: %s",
			worst->number, worst->name, device(s), first, worst->action);
	else
		finding(out, VERDICT_WARN, CAUSE_XID,
			"the kernel log holds Xids of %s that are not in the catalogue: %.60s", device(s),
			case_text(s->c, "xid_list"));
	return true;
}

static bool is_rise(const char *field)
{
	size_t n = strlen(field);

	return n > 5 && !strcmp(field + n - 5, ".rise");
}

/* Returns the first earlier reading of this target that has the field `name`, and its number in *out. NULL:
 * none. */
static const struct record_case *first_reading(const struct subject *s, const char *name, double *out)
{
	const struct record *r = s->ctx->record;
	size_t i;

	for (i = 0; i < r->case_count && &r->cases[i] != s->c; i++)
		if (!strcmp(r->cases[i].target, s->c->target) && r->cases[i].reading &&
		    case_number(&r->cases[i], name, out))
			return &r->cases[i];
	return NULL;
}

/* "FIELD.rise": this reading minus the first one of the run, which *from returns. If the run read this
 * counter of the GPU at its start and end, gpu_changes.c judges the rise instead, together with the case in
 * which it happened. */
static bool risen(const struct subject *s, const char *field, double *out, const struct record_case **from)
{
	double now, first;
	char name[64];

	*from = NULL;
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(field) - strlen(".rise")), field);
	if (s->gpu && health_supplied(&s->ctx->record->health, s->gpu->pci, name))
		return false;
	*from = case_number(s->c, name, &now) ? first_reading(s, name, &first) : NULL;
	if (*from)
		*out = now - first;
	return *from != NULL;
}

/* The count of one part in a list such as "link 3: 12, link 7: 1"; 0: not listed. */
static double part_count(const char *list, const char *part, size_t size)
{
	while (list && *list) {
		if (!strncmp(list, part, size) && list[size] == ':')
			return strtod(list + size + 1, NULL);
		list += strcspn(list, ",");
		list += strspn(list, ", ");
	}
	return 0;
}

/* Writes the parts whose counts grew between two such lists, and by how much. */
static void parts_risen(const char *before, const char *now, char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	while (now && *now && n < size) {
		size_t name = strcspn(now, ":"), whole = strcspn(now, ",");
		double more = name < whole ? strtod(now + name + 1, NULL) - part_count(before, now, name) : 0;

		if (more > 0)
			n += (size_t)snprintf(out + n, size - n, "%s%.*s: %.0f", n ? ", " : "", (int)name,
					      now, more);
		now += whole;
		now += strspn(now, ", ");
	}
}

/* Reads a field of the case itself. For link cases it also reads what the sampler saw of the link inside the
 * window. */
static bool own_number(const struct subject *s, const char *field, double *out)
{
	const struct record_case *from;
	struct span span;
	bool width = !strcmp(field, "pcie_width_loaded");

	if (is_rise(field))
		return risen(s, field, out, &from);
	if (subject_number(s, field, out))
		return true;
	if (strncmp(s->c->limit, "link", 4) || s->gpu_count > 1 ||
	    (!width && strcmp(field, "pcie_gen_loaded")) ||
	    !subject_span(s, width ? "pcie_width" : "pcie_gen", &span))
		return false;
	*out = span.max; /* an idle link may train down before and after the window, so its state under load
			    counts */
	return true;
}

static bool other_number(const struct subject *s, const char *field, double *out)
{
	int f;

	if (subject_number(s, field, out))
		return true;
	for (f = 0; s->gpu && f < GPU_FACT_COUNT; f++)
		if (!strcmp(gpu_fact_name((enum gpu_fact)f), field) && gpu_has(s->gpu, (enum gpu_fact)f)) {
			*out = s->gpu->fact[f];
			return true;
		}
	return false;
}

/* -1: the field is not available; 0: the rule does not apply; 1: it applies. */
static int applies(const struct subject *s, const struct rule *r)
{
	const char *text = case_text(s->c, r->field);
	double value, than = r->than;
	bool has = own_number(s, r->field, &value);

	if (r->op == RULE_ABSENT)
		return !has && !text && (s->c->reading || s->c->job);
	if (r->than_text)
		return text ? rule_compare_text(r, text) : -1;
	if (!has && !(text && expect_parse(&value, text, "")))
		return -1;
	if (r->than_field && !other_number(s, r->than_field, &than))
		return -1;
	return rule_compare(r, value, than * (r->than_field ? r->factor : 1));
}

/* Prints fields of bytes with a unit and all others with six digits. */
static void field_text(char *out, size_t size, const char *field, double value)
{
	size_t n = strlen(field);

	if (n > 6 && !strcmp(field + n - 6, "_bytes"))
		units_format(out, size, value, "B");
	else
		snprintf(out, size, "%g", value);
}

/* The affected part, from the rule's text field. For a counter that rose: the parts whose own counts rose. */
static const char *place_of(const struct subject *s, const struct rule *r, char *buffer, size_t size)
{
	const char *now = r->place ? case_text(s->c, r->place) : NULL;
	const struct record_case *from;
	double more;

	if (!now || !is_rise(r->field) || !risen(s, r->field, &more, &from))
		return now;
	parts_risen(case_text(from, r->place), now, buffer, size);
	return *buffer ? buffer : NULL;
}

static void rule_broken(struct judgement *out, const struct subject *s, const struct rule *r)
{
	char shown[32], parts[128];
	const char *place = place_of(s, r, parts, sizeof(parts));
	double value, than;

	if (!own_number(s, r->field, &value)) {
		finding(out, r->verdict, r->cause, "%s: %s", r->text, r->action);
		return;
	}
	field_text(shown, sizeof(shown), r->field, value);
	if (place && r->than_field && other_number(s, r->than_field, &than) && than > 0)
		finding(out, r->verdict, r->cause, "%s (%s %s, %s %g: %.3f; %s %.80s): %s", r->text, r->field,
			shown, r->than_field, than, value / than, r->place, place, r->action);
	else if (place)
		finding(out, r->verdict, r->cause, "%s (%s %s: %.120s): %s", r->text, r->field, shown, place,
			r->action);
	else if (r->than_field && other_number(s, r->than_field, &than) && than > 0)
		finding(out, r->verdict, r->cause, "%s (%s %s, %s %g: %.3f): %s", r->text, r->field, shown,
			r->than_field, than, value / than, r->action);
	else
		finding(out, r->verdict, r->cause, "%s (%s %s): %s", r->text, r->field, shown, r->action);
}

unsigned verdict_rules(struct judgement *out, const struct subject *s, unsigned *judging)
{
	unsigned looked = 0;
	size_t i;

	*judging = 0;
	for (i = 0; i < s->ctx->e->rule_count; i++) {
		const struct rule *r = &s->ctx->e->rule[i];
		int hit;

		if (!when_matches(&r->when, subject_word, s) ||
		    (r->unless.count && when_matches(&r->unless, subject_word, s)))
			continue;
		hit = applies(s, r);
		looked += hit >= 0;
		*judging += hit >= 0 && r->judges;
		if (hit <= 0)
			continue;
		if (r->verdict == VERDICT_PASS)
			remark(out, r->cause);
		else
			rule_broken(out, s, r);
	}
	return looked;
}

void verdict_reading(struct judgement *out, const struct subject *s)
{
	unsigned judging, looked = verdict_rules(out, s, &judging);

	looked += xids_before(out, s);
	out->judged_by = looked ? JUDGED_RULE : JUDGED_NOTHING;
	verdict_decisive(out, s);
	if (!looked && !*out->reason) {
		finding(out, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE, "read, but no rule judges it");
		return;
	}
	if (!*out->reason)
		snprintf(out->reason, sizeof(out->reason), "%u rule%s met", looked, looked == 1 ? "" : "s");
}
