/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the NCCL settings and applies the rules of health.yaml to each of them. */
#include "cmd/info/info.h"
#include "cmd/top/links/links.h"
#include "core/json/member.h"
#include "machine/nccl/variables.h"
#include "machine/nccl/settings.h"

static void say(json_t *row, const char *verdict, const char *says)
{
	json_object_set_new(row, "verdict", json_string(verdict));
	json_object_set_new(row, "says", json_string(says));
}

/* Applies the rule for this field, if one is broken. A more severe rule replaces the row's earlier text. */
static void hold_against(json_t *row, const struct expectations *e, const char *field, const char *value)
{
	struct broken_rule rule;
	char says[512];

	if (!expectations_rule(e, field, value, &rule) ||
	    (json_object_get(row, "fails") && rule.verdict != VERDICT_FAIL))
		return;
	snprintf(says, sizeof(says), "%s: %s", rule.text, rule.action);
	say(row, "hurts", says);
	if (rule.verdict == VERDICT_FAIL)
		json_object_set_new(row, "fails", json_true());
	if (rule.source)
		json_object_set_new(row, "source", json_string(rule.source));
}

static void judge_known(json_t *row, const struct nccl_variable *known, const struct expectations *e,
			const json_t *facts)
{
	const char *value = json_member_text(row, "value");
	char normal[1024], field[160];
	struct text missing = {0}, says = {0};

	say(row, "ok", known->help);
	nccl_value_normal(json_member_text(row, "name"), value, normal, sizeof(normal));
	hold_against(row, e, json_member_text(row, "name"), normal);
	nccl_missing(&missing, json_member_text(row, "name"), value, facts);
	if (missing.size) {
		snprintf(field, sizeof(field), "%s_missing", json_member_text(row, "name"));
		hold_against(row, e, field, text_str(&missing));
		text_addf(&says, "%s: %s", text_str(&missing), json_member_text(row, "says"));
		say(row, "hurts", text_str(&says));
	}
	text_release(&missing);
	text_release(&says);
}

/* A variable that nobody reads has no effect, but its user believes that it has. */
static void judge_unknown(json_t *row)
{
	const char *name = json_member_text(row, "name"), *near = nccl_variable_nearest(name);
	size_t n = strlen(name);
	char says[400];

	if (n && name[n - 1] == ' ')
		snprintf(says, sizeof(says),
			 "there is a blank before =, and NCCL treats it as part of the name; remove it");
	else if (near)
		snprintf(says, sizeof(says), "no known program reads it; did you mean %s", near);
	else
		snprintf(says, sizeof(says), "no known program reads it");
	if (near)
		json_object_set_new(row, "nearest", json_string(near));
	say(row, "unknown", says);
}

static void judge_row(json_t *row, const struct expectations *e, const json_t *facts)
{
	const char *name = json_member_text(row, "name"), *value = json_member_text(row, "value");
	const struct nccl_variable *known = nccl_variable_find(name);
	char says[400];

	if (*json_member_text(row, "beaten_by")) {
		snprintf(says, sizeof(says), "not used: %s overrides it", json_member_text(row, "beaten_by"));
		say(row, "unused", says);
	} else if (*value && value[strlen(value) - 1] == '\r') {
		say(row, "hurts",
		    "the value ends with a carriage return: save the file with Unix line endings");
	} else if (!known) {
		judge_unknown(row);
	} else if (known->reader != NCCL_READER_NCCL) {
		snprintf(says, sizeof(says), "read by %s%s%s", nccl_reader_text(known->reader),
			 *known->help ? ": " : "", known->help);
		say(row, known->reader == NCCL_READER_OLD ? "unknown" : "ok", says);
	} else {
		judge_known(row, known, e, facts);
	}
}

json_t *links_nccl(const json_t *environment, const json_t *files, const json_t *facts,
		   const struct expectations *e)
{
	json_t *part = json_pack("{s:o,s:[]}", "settings", nccl_settings(environment, files), "unreadable");
	json_t *row;
	const json_t *file;
	size_t i;

	json_array_foreach(json_object_get(part, "settings"), i, row) judge_row(row, e, facts);
	json_array_foreach((json_t *)files, i, file)
	{
		if (json_object_get(file, "error"))
			json_array_append(json_object_get(part, "unreadable"), (json_t *)file);
	}
	return part;
}
