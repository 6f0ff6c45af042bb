/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/compare/compare.h"
#include "judge/case/context.h"

#define X(name, text) text,
static const char *const change_texts[] = {COMPARE_CHANGES(X)};
#undef X

const char *compare_change_text(enum compare_change change)
{
	return change < COMPARE_CHANGE_COUNT ? change_texts[change] : "";
}

bool compare_slower(const struct compare_row *r)
{
	return r->change == COMPARE_SLOWER || r->change == COMPARE_SLOWER_CLOCK;
}

bool compare_fit(const struct judgement *j)
{
	if (!j->has_figure || !(j->figure > 0))
		return false;
	switch (j->verdict) {
	case VERDICT_PASS:
	case VERDICT_MEASURED:
	case VERDICT_WARN:
	case VERDICT_UNKNOWN:
		return true;
	case VERDICT_FAIL: /* a slow figure can be compared, a wrong one cannot */
		return j->cause != CAUSE_WRONG_RESULT && j->cause != CAUSE_NAN && j->cause != CAUSE_HBM_DATA;
	case VERDICT_SKIP:
	case VERDICT_UNTRUSTED:
	case VERDICT_ERROR:
	case VERDICT_COUNT:
		break;
	}
	return false;
}

static const char *text_at(const json_t *facts, const char *part, const char *name)
{
	const char *text = json_string_value(json_object_get(json_object_get(facts, part), name));

	return text ? text : "";
}

static bool has_uuid(const json_t *gpus, const char *uuid)
{
	const json_t *gpu;
	size_t i;

	json_array_foreach((json_t *)gpus, i, gpu)
	{
		const char *other = json_string_value(json_object_get(gpu, "uuid"));

		if (other && !strcmp(other, uuid))
			return true;
	}
	return false;
}

static bool same_text(const json_t *a, const json_t *b, const char *part, const char *name)
{
	return !strcmp(text_at(a, part, name), text_at(b, part, name));
}

/* True if the GPUs have the same UUIDs. Without UUIDs: the same CPU model, and the same boot id or host name.
 */
static bool same_machine(const json_t *fa, const json_t *fb)
{
	const json_t *ga = json_object_get(fa, "gpus"), *gb = json_object_get(fb, "gpus"), *gpu;
	size_t i;

	if (!fa || !fb || json_array_size(ga) != json_array_size(gb))
		return false;
	json_array_foreach((json_t *)ga, i, gpu)
	{
		const char *uuid = json_string_value(json_object_get(gpu, "uuid"));

		if (uuid && !has_uuid(gb, uuid))
			return false;
	}
	if (json_array_size(ga) && json_string_value(json_object_get(json_array_get(ga, 0), "uuid")))
		return true;
	if (!same_text(fa, fb, "cpu", "model"))
		return false;
	if (*text_at(fa, "system", "boot_id") && same_text(fa, fb, "system", "boot_id"))
		return true; /* one kernel, perhaps in containers with different names */
	return same_text(fa, fb, "system", "hostname");
}

/* True if all models are the same. That holds for twin machines, and for one machine whose names changed: a
 * VM gets a new MAC or boot id at every start. */
static bool alike(const json_t *fa, const json_t *fb)
{
	const json_t *ga = json_object_get(fa, "gpus"), *gb = json_object_get(fb, "gpus"), *gpu;
	size_t i;

	if (!fa || !fb || json_array_size(ga) != json_array_size(gb) || !same_text(fa, fb, "cpu", "model"))
		return false;
	json_array_foreach((json_t *)ga, i, gpu)
	{
		const char *name = json_string_value(json_object_get(gpu, "name"));
		const char *other = json_string_value(json_object_get(json_array_get(gb, i), "name"));

		if (!name || !other || strcmp(name, other))
			return false;
	}
	return true;
}

/* True if both runs have equally many nodes, and `so` holds for each node and its counterpart. */
static bool each_node(const struct record *a, const struct record *b,
		      bool (*so)(const json_t *fa, const json_t *fb))
{
	if (compare_nodes(a) != compare_nodes(b))
		return false;
	for (size_t i = 0; i < compare_nodes(a); i++)
		if (!so(compare_node_facts(a, i), compare_node_facts(b, compare_node_of(a, i, b))))
			return false;
	return true;
}

bool compare_same_machine(const struct record *a, const struct record *b)
{
	return each_node(a, b, same_machine);
}

/* Tells the user how to state that the runs come from one machine. */
static void name_history(struct comparison *c, const struct compare_run *runs, size_t count)
{
	size_t used = strlen(c->headline), i;

	for (i = 1; i < count; i++)
		if (!each_node(runs[0].record, runs[i].record, alike))
			return;
	snprintf(c->headline + used, sizeof(c->headline) - used,
		 "; the machines have the same models but differ in %s: if it is one machine, "
		 "use --as history",
		 json_array_size(json_object_get(compare_node_facts(runs[0].record, 0), "gpus"))
			 ? "the GPUs' UUIDs or the host name"
			 : "the host name and the boot id");
}

/* Counts over all rows. */
struct tally {
	size_t slower, judged, faster, comparable, worse, open, open_judged;
};

/* True if the case fails now and did not before. A CPU without a fixed clock that is judged by its own
 * ceiling may pass or fail by noise. Without a change of its figure that is no news, unless its data is wrong
 * or a rule is broken. */
static bool fails_anew(const struct compare_row *r)
{
	if (r->verdict_after != VERDICT_FAIL || r->verdict_before == VERDICT_FAIL)
		return false;
	return !(r->floats && !r->fails_otherwise && !compare_slower(r) &&
		 r->change != COMPARE_NOT_COMPARABLE);
}

static struct tally tally_of(const struct comparison *c)
{
	struct tally t = {0};

	for (size_t i = 0; i < c->row_count; i++) {
		const struct compare_row *r = &c->row[i];
		bool open = r->change == COMPARE_UNSUPPORTED;

		t.comparable += r->change != COMPARE_NOT_COMPARABLE;
		t.slower += compare_slower(r);
		t.judged += compare_slower(r) && r->judged;
		t.faster += r->change == COMPARE_FASTER || r->change == COMPARE_FASTER_CLOCK;
		t.worse += fails_anew(r);
		t.open += open;
		t.open_judged += open && r->judged && (r->lower_is_better ? r->raw > 0 : r->raw < 0);
	}
	return t;
}

static void history_headline(struct comparison *c)
{
	struct tally t = tally_of(c);
	char open[80] = "";

	c->exit_code = t.judged || t.worse ? 1 : t.comparable && !t.open_judged ? 0 : 2;
	if (t.open)
		snprintf(open, sizeof(open), ", %zu changed by no more than the noise", t.open);
	if (!t.comparable && !t.worse)
		snprintf(c->headline, sizeof(c->headline),
			 "nothing to compare: no case has a usable measurement on both sides");
	else
		snprintf(c->headline, sizeof(c->headline),
			 "one machine: %zu of %zu cases slower (%zu of them judged), %zu faster%s, %zu "
			 "newly fail; %zu difference%s of inventory",
			 t.slower, t.comparable, t.judged, t.faster, open, t.worse, c->difference_count,
			 c->difference_count == 1 ? "" : "s");
}

static void fleet_headline(struct comparison *c, size_t runs)
{
	size_t slower = 0, i;

	for (i = 0; i < c->outlier_count; i++)
		slower += c->outlier[i].slower;
	c->exit_code = slower ? 1 : c->groups ? 0 : 2;
	if (!c->groups && c->pair_count)
		snprintf(c->headline, sizeof(c->headline),
			 "%zu machines side by side: %zu values of the same case; no verdict, because "
			 "finding an outlier needs four values of a kind; %zu difference%s of inventory",
			 runs, c->pair_count, c->difference_count, c->difference_count == 1 ? "" : "s");
	else if (!c->groups)
		snprintf(c->headline, sizeof(c->headline),
			 "%zu machines: nothing to compare, because no kind of value has four values or more",
			 runs);
	else
		snprintf(c->headline, sizeof(c->headline),
			 "%zu machines: %zu slow and %zu fast outliers over %zu kinds of value; %zu "
			 "difference%s of inventory",
			 runs, slower, c->outlier_count - slower, c->groups, c->difference_count,
			 c->difference_count == 1 ? "" : "s");
}

enum status compare_runs(struct comparison *out, const struct compare_run *runs, size_t count,
			 enum compare_as as, struct error *err)
{
	enum status status;
	size_t i;

	*out = (struct comparison){0};
	if (count < 2)
		return error_set(err, STATUS_BAD_INPUT,
				 "compare needs two or more runs: assay compare BEFORE AFTER");
	out->fleet = as == COMPARE_FLEET;
	for (i = 1; as == COMPARE_AUTO && i < count; i++)
		out->fleet = out->fleet || !each_node(runs[0].record, runs[i].record, same_machine);
	for (i = 0; out->fleet && i < count; i++)
		if (runs[i].after)
			return error_set(
				err, STATUS_BAD_INPUT,
				"-- separates the earlier and the later runs of one machine, but these runs "
				"are from several machines%s",
				as == COMPARE_FLEET ? "" : "; if it is one machine, use --as history");
	status = compare_inventory(out, runs, count, err);
	if (!status)
		status = out->fleet ? compare_fleet(out, runs, count, err)
				    : compare_history(out, runs, count, err);
	if (!status && !out->fleet)
		status = compare_levels(out, runs, count, err);
	if (!status && out->fleet && (count == 2 || !out->groups))
		status = compare_side(out, runs, count, err);
	if (status) {
		comparison_release(out);
		return status;
	}
	if (out->fleet)
		fleet_headline(out, count);
	if (out->fleet && as == COMPARE_AUTO && !out->groups)
		name_history(out, runs, count);
	if (!out->fleet)
		history_headline(out);
	return STATUS_OK;
}

void comparison_release(struct comparison *c)
{
	free(c->row);
	free(c->outlier);
	free(c->pair);
	free(c->difference);
	*c = (struct comparison){0};
}
