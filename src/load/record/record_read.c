/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "core/json/member.h"
#include "load/record/record_members.h"

enum { STATUS_MOST = 999 };

static enum status bad(struct error *err, const char *name, const char *what)
{
	return error_set(err, STATUS_BAD_INPUT, "member %s %s", name, what);
}

static enum status read_member(struct load_record *r, const struct record_member *m, const json_t *line,
			       struct error *err)
{
	const json_t *value = json_object_get(line, m->name);
	const json_int_t number = json_integer_value(value);
	char *at = (char *)r + m->offset;

	if (!value && m->kind == MEMBER_INDEX)
		return bad(err, m->name, "is missing");
	if (value && (!json_is_integer(value) || number < 0))
		return bad(err, m->name, "is no whole number from 0 on");
	if (m->kind == MEMBER_U32 && number > UINT32_MAX)
		return bad(err, m->name, "is above 4294967295");
	if (m->kind == MEMBER_U32)
		*(uint32_t *)at = (uint32_t)number;
	else if (m->kind == MEMBER_COUNT)
		*(int64_t *)at = value ? number : LOAD_UNKNOWN;
	else
		*(uint64_t *)at = value ? (uint64_t)number : LOAD_NEVER;
	return STATUS_OK;
}

static enum status read_error(struct load_record *r, const json_t *line, struct error *err)
{
	const json_t *value = json_object_get(line, "error");

	if (!value)
		return STATUS_OK;
	for (int e = LOAD_ERROR_NONE + 1; e < LOAD_ERROR_COUNT && json_is_string(value); e++)
		if (!strcmp(json_string_value(value), load_error_word((enum load_error)e))) {
			r->error = (enum load_error)e;
			return STATUS_OK;
		}
	return bad(err, "error", "is no word for an error");
}

static uint32_t flag_of(const json_t *word)
{
	for (size_t i = 0; i < RECORD_FLAGS && json_is_string(word); i++)
		if (!strcmp(json_string_value(word), record_flags[i].word))
			return record_flags[i].flag;
	return 0;
}

static enum status read_flags(struct load_record *r, const json_t *line, struct error *err)
{
	const json_t *list = json_object_get(line, "flags"), *word;
	size_t i;

	if (list && !json_is_array(list))
		return bad(err, "flags", "is no list");
	json_array_foreach(list, i, word)
	{
		if (!flag_of(word))
			return bad(err, "flags", "has an unknown word");
		r->flags |= flag_of(word);
	}
	return STATUS_OK;
}

/* The gaps lie between the first and the last token; each is rounded to a microsecond. */
static bool gaps_fit(const struct load_record *r, uint64_t sum_us)
{
	const uint64_t slack_us = r->gap_count;

	return r->first_token_ns != LOAD_NEVER && r->last_token_ns != LOAD_NEVER &&
	       r->last_token_ns >= r->first_token_ns &&
	       sum_us <= (r->last_token_ns - r->first_token_ns) / 1000 + slack_us;
}

static enum status read_gaps(struct load_record *r, const json_t *line, struct error *err)
{
	const json_t *list = json_object_get(line, "gaps_us"), *value;
	const size_t count = json_array_size(list);
	uint64_t sum_us = 0;
	size_t i;

	if (!list)
		return STATUS_OK;
	if (!count || count + 1 != r->chunks)
		return bad(err, "gaps_us", "is no list with one number less than chunks");
	r->gap_us = malloc(count * sizeof(*r->gap_us));
	if (!r->gap_us)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for %zu gaps",
				       count);
	json_array_foreach(list, i, value)
	{
		const json_int_t us = json_integer_value(value);

		if (!json_is_integer(value) || us < 0 || us > UINT32_MAX)
			return bad(err, "gaps_us",
				   "has an item that is no whole number from 0 to 4294967295");
		r->gap_us[r->gap_count++] = (uint32_t)us;
		sum_us += (uint64_t)us;
	}
	return gaps_fit(r, sum_us)
		       ? STATUS_OK
		       : bad(err, "gaps_us", "adds up to more than the time from first to last token");
}

static enum status check_order(const struct load_record *r, struct error *err)
{
	const struct record_member *before = NULL;
	uint64_t latest = 0;

	for (size_t i = 0; i < RECORD_MEMBERS; i++) {
		const struct record_member *m = &record_members[i];
		uint64_t at;

		if (m->kind != MEMBER_TIME)
			continue;
		at = *(const uint64_t *)((const char *)r + m->offset);
		if (at == LOAD_NEVER)
			continue;
		if (at < latest)
			return error_set(err, STATUS_BAD_INPUT, "member %s is earlier than %s", m->name,
					 before ? before->name : "");
		if (m->offset == offsetof(struct load_record, connected_ns))
			continue; /* measured by the HTTP library, with readings of the clock of its own */
		latest = at;
		before = m;
	}
	return STATUS_OK;
}

static enum status check(const struct load_record *r, struct error *err)
{
	if (r->scheduled_ns == LOAD_NEVER)
		return bad(err, "scheduled_ns", "is missing");
	if (r->end_ns == LOAD_NEVER)
		return bad(err, "end_ns", "is missing");
	if (r->status > STATUS_MOST)
		return bad(err, "status", "is no HTTP status");
	if (r->chunks && r->first_token_ns == LOAD_NEVER)
		return bad(err, "first_token_ns", "is missing although there are chunks");
	return check_order(r, err);
}

static enum status read_line(struct load_record *r, const json_t *line, struct error *err)
{
	enum status st = STATUS_OK;

	if (strcmp(json_member_text(line, "type"), "request") != 0)
		return bad(err, "type", "is not \"request\"");
	for (size_t i = 0; i < RECORD_MEMBERS && !st; i++)
		st = read_member(r, &record_members[i], line, err);
	if (!st)
		st = read_error(r, line, err);
	if (!st)
		st = read_flags(r, line, err);
	if (!st)
		st = check(r, err);
	return st ? st : read_gaps(r, line, err);
}

enum status load_record_read(struct load_record *r, const char *line, size_t size, struct error *err)
{
	json_error_t wrong;
	json_t *root = json_loadb(line, size, JSON_REJECT_DUPLICATES, &wrong);
	enum status st;

	*r = (struct load_record){0};
	if (!root && (!wrong.text[0] ||
		      json_error_code(&wrong) == json_error_out_of_memory)) /* mostly without a text */
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a line of %zu bytes", size);
	if (!root)
		return error_set(err, STATUS_BAD_INPUT, "this is no JSON: %s", wrong.text);
	st = json_is_object(root) ? read_line(r, root, err)
				  : error_set(err, STATUS_BAD_INPUT, "this is no JSON object");
	json_decref(root);
	if (st)
		load_record_release(r);
	return st;
}
