/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rules for readings, the Xids, and the questions that only the operator can answer. */
#include "judge/expect/expect.h"
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const ops[] = {
	[RULE_ABOVE] = "above",	  [RULE_BELOW] = "below",	[RULE_IS] = "is",
	[RULE_IS_NOT] = "is_not", [RULE_HAS_BITS] = "has_bits", [RULE_ABSENT] = "absent",
};

static bool is_name(const char *text)
{
	return (*text >= 'a' && *text <= 'z') || *text == '_';
}

/* `than` is a number (perhaps hexadecimal) or another field, perhaps "0.995 * power_limit_default_w". For is
 * and is_not it may be a text. */
static enum status operand(struct rule *r, const struct tree *value, struct error *err)
{
	const char *text = value->kind == TREE_SCALAR ? value->text : "", *star;
	char *end;

	r->factor = 1;
	if ((r->op == RULE_IS || r->op == RULE_IS_NOT) && (value->quoted || is_name(text))) {
		r->than_text = text;
		return STATUS_OK;
	}
	star = strchr(text, '*');
	r->than = strtod(text, &end);
	if (end != text && star) {
		r->factor = r->than;
		text = star + 1 + strspn(star + 1, " ");
	} else if (end != text && !*end) {
		return STATUS_OK;
	}
	if (is_name(text)) {
		r->than_field = text;
		return STATUS_OK;
	}
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s is neither a number nor the name of a field",
			 value->file, value->line, text);
}

static enum status comparison(struct rule *r, const struct tree *row, struct error *err)
{
	const struct tree *found = NULL;
	size_t i;

	for (i = 0; i < COUNT(ops); i++) {
		const struct tree *value = tree_get(row, ops[i]);

		if (value && found)
			return error_set(err, STATUS_BAD_INPUT, "%s:%d: rule %s has more than one comparison",
					 row->file, row->line, r->name);
		if (value) {
			found = value;
			r->op = (enum rule_op)i;
		}
	}
	if (!found)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: rule %s needs one of above, below, is, is_not, has_bits, absent",
				 row->file, row->line, r->name);
	if (r->op != RULE_ABSENT)
		return operand(r, found, err);
	r->rights = found->kind == TREE_SCALAR ? found->text : NULL;
	if (!r->rights || !*r->rights)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: absent needs a text that says what would make the field readable",
				 row->file, row->line);
	return STATUS_OK;
}

static enum status outcome(enum verdict *out, const struct tree *row, const char *key, struct error *err)
{
	const char *name = tree_text(row, key, "");

	if (verdict_from_name(name, out) && *out != VERDICT_UNTRUSTED && *out != VERDICT_MEASURED)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "%s:%d: %s is %s, not pass, warn, fail, error, unknown or skip", row->file,
			 row->line, key, *name ? name : "missing");
}

static enum status rule_read(struct rule *r, const struct tree *row, const struct tree *sources,
			     struct error *err)
{
	static const char *const keys[] = {"name",   "field",	"when",	  "above",    "below",
					   "is",     "is_not",	"absent", "has_bits", "text",
					   "cause",  "verdict", "action", "source",   "confidence",
					   "unless", "place",	"judges", NULL};
	enum status status = expect_need_text(&r->name, row, "name", err);
	const char *cause = tree_text(row, "cause", "");

	r->file = row->file;
	r->line = row->line;
	if (!status)
		status = tree_check_keys(row, keys, err);
	if (!status)
		status = expect_need_text(&r->field, row, "field", err);
	if (!status)
		status = expect_need_text(&r->text, row, "text", err);
	if (!status)
		status = expect_when(&r->when, row, "when", err);
	if (!status)
		status = expect_when(&r->unless, row, "unless", err);
	if (!status)
		status = comparison(r, row, err);
	if (!status)
		status = outcome(&r->verdict, row, "verdict", err);
	if (!status && !cause_from_name(cause, &r->cause))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: there is no cause %s", row->file, row->line,
				   cause);
	if (!status)
		status = expect_need_text(&r->action, row, "action", err);
	r->place = tree_text(row, "place", NULL);
	if (!status)
		status = tree_bool(row, "judges", &r->judges, err);
	if (!status && r->judges && !r->when.count)
		status = error_set(err, STATUS_BAD_INPUT,
				   "%s:%d: rule %s has no condition (when) and would judge every case",
				   row->file, row->line, r->name);
	if (!status)
		status = expect_source(&r->source, row, sources, err);
	return status;
}

enum status expect_read_rules(struct expectations *e, const struct tree *list, const struct tree *sources,
			      struct error *err)
{
	enum status status = STATUS_OK;
	struct rule *grown;
	size_t i;

	for (i = 0; i < list->count && !status; i++) {
		grown = expect_grow(e->rule, e->rule_count, sizeof(*grown), err);
		if (!grown)
			return STATUS_NO_RESOURCE;
		e->rule = grown;
		status = rule_read(&grown[e->rule_count++], list->items[i], sources, err);
	}
	return status;
}

bool rule_compare(const struct rule *r, double value, double than)
{
	switch (r->op) {
	case RULE_ABOVE:
		return value > than;
	case RULE_BELOW:
		return value < than;
	case RULE_IS:
		return fabs(value - than) < 1e-9;
	case RULE_IS_NOT:
		return fabs(value - than) >= 1e-9;
	case RULE_HAS_BITS:
		return ((uint64_t)value & (uint64_t)than) != 0;
	case RULE_ABSENT:
		break;
	}
	return false;
}

bool rule_compare_text(const struct rule *r, const char *text)
{
	return (strcmp(text, r->than_text) == 0) == (r->op == RULE_IS);
}

/* True if the rule depends on this field alone and `value` breaks it. */
static bool rule_alone_broken(const struct rule *r, const char *field, const char *value)
{
	double number;

	if (strcmp(r->field, field) || r->when.count || r->unless.count || r->than_field ||
	    r->op == RULE_ABSENT)
		return false;
	if (r->than_text)
		return rule_compare_text(r, value);
	return expect_parse(&number, value, "") && rule_compare(r, number, r->than);
}

bool expectations_rule(const struct expectations *e, const char *field, const char *value,
		       struct broken_rule *out)
{
	bool found = false;

	for (size_t i = 0; i < e->rule_count; i++) {
		const struct rule *r = &e->rule[i];

		if (!rule_alone_broken(r, field, value) ||
		    (found && verdict_weight(r->verdict) <= verdict_weight(out->verdict)))
			continue;
		*out = (struct broken_rule){r->verdict, r->cause, r->text, r->action, r->source.text};
		found = true;
	}
	return found;
}

static enum status xid_read(struct xid_row *x, const struct tree *row, const struct tree *sources,
			    struct error *err)
{
	static const char *const keys[] = {"xid",    "name",   "during",     "before",
					   "action", "source", "confidence", NULL};
	enum status status = expect_need_text(&x->name, row, "name", err);
	double number = 0;

	x->file = row->file;
	x->line = row->line;
	if (!status)
		status = tree_check_keys(row, keys, err);
	if (!status && !tree_get(row, "xid"))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: xid is missing", row->file, row->line);
	if (!status)
		status = expect_number(&number, tree_get(row, "xid"), "", err);
	if (!status && !(number >= 1 && number <= 4095))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: %g is not an Xid number (1 to 4095)",
				   row->file, row->line, number);
	if (!status)
		x->number = (int)number;
	if (!status)
		status = outcome(&x->during, row, "during", err);
	if (!status)
		status = outcome(&x->before, row, "before", err);
	if (!status)
		status = expect_need_text(&x->action, row, "action", err);
	if (!status)
		status = expect_source(&x->source, row, sources, err);
	return status;
}

enum status expect_read_xids(struct expectations *e, const struct tree *list, const struct tree *sources,
			     struct error *err)
{
	enum status status = STATUS_OK;
	struct xid_row *x;
	size_t i;

	for (i = 0; i < list->count && !status; i++) {
		x = expect_grow(e->xid, e->xid_count, sizeof(*x), err);
		if (!x)
			return STATUS_NO_RESOURCE;
		e->xid = x;
		status = xid_read(&x[e->xid_count], list->items[i], sources, err);
		if (!status && expect_xid(e, x[e->xid_count].number))
			status =
				error_set(err, STATUS_BAD_INPUT, "%s:%d: Xid %d is listed twice",
					  list->items[i]->file, list->items[i]->line, x[e->xid_count].number);
		e->xid_count++;
	}
	return status;
}

enum status expect_read_operator(struct expectations *e, const struct tree *list, const struct tree *sources,
				 struct error *err)
{
	static const char *const keys[] = {"when", "text", NULL};
	enum status status = STATUS_OK;
	struct operator_row *o;
	size_t i;

	(void)sources;
	for (i = 0; i < list->count && !status; i++) {
		o = expect_grow(e->operator_, e->operator_count, sizeof(*o), err);
		if (!o)
			return STATUS_NO_RESOURCE;
		e->operator_ = o;
		o += e->operator_count++;
		o->file = list->items[i]->file;
		status = expect_need_text(&o->text, list->items[i], "text", err);
		if (!status)
			status = tree_check_keys(list->items[i], keys, err);
		if (!status)
			status = expect_when(&o->when, list->items[i], "when", err);
	}
	return status;
}

const struct xid_row *expect_xid(const struct expectations *e, int number)
{
	size_t i;

	for (i = 0; i < e->xid_count; i++)
		if (e->xid[i].number == number)
			return &e->xid[i];
	return NULL;
}
