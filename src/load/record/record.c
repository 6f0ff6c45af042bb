/* SPDX-License-Identifier: Apache-2.0 */
#include "load/record/record.h"
#include <stdlib.h>
#include <string.h>
#include "load/record/record_members.h"

#define X(name, word, meaning) word,
static const char *const words[] = {LOAD_ERRORS(X)};
#undef X

const char *load_error_word(enum load_error e)
{
	return words[e < LOAD_ERROR_COUNT ? e : LOAD_ERROR_NONE];
}

void load_record_release(struct load_record *r)
{
	free(r->gap_us);
	*r = (struct load_record){0};
}

static void add_member(struct text *out, const struct record_member *m, const struct load_record *r)
{
	const char *at = (const char *)r + m->offset;

	switch (m->kind) {
	case MEMBER_INDEX:
	case MEMBER_TIME: {
		const uint64_t value = *(const uint64_t *)at;

		if (value != LOAD_NEVER)
			text_addf(out, ",\"%s\":%llu", m->name, (unsigned long long)value);
		return;
	}
	case MEMBER_U32:
		text_addf(out, ",\"%s\":%u", m->name, (unsigned)*(const uint32_t *)at);
		return;
	case MEMBER_COUNT: {
		const int64_t value = *(const int64_t *)at;

		if (value >= 0)
			text_addf(out, ",\"%s\":%lld", m->name, (long long)value);
		return;
	}
	}
}

static void add_flags(struct text *out, uint32_t flags)
{
	const char *comma = "";

	text_add(out, ",\"flags\":[");
	for (size_t i = 0; i < RECORD_FLAGS; i++)
		if (flags & record_flags[i].flag) {
			text_addf(out, "%s\"%s\"", comma, record_flags[i].word);
			comma = ",";
		}
	text_add(out, "]");
}

/* Without printf: there is one for each chunk of each answer. */
static void add_gaps(struct text *out, const struct load_record *r)
{
	char digits[12];

	if (!r->gap_count)
		return;
	text_add(out, ",\"gaps_us\":");
	for (uint32_t i = 0; i < r->gap_count; i++) {
		uint32_t left = r->gap_us[i];
		size_t at = sizeof(digits);

		do
			digits[--at] = (char)('0' + left % 10);
		while (left /= 10);
		digits[--at] = i ? ',' : '[';
		text_add_bytes(out, digits + at, sizeof(digits) - at);
	}
	text_add(out, "]");
}

void load_record_write(struct text *out, const struct load_record *r)
{
	text_add(out, "{\"type\":\"request\"");
	for (size_t i = 0; i < RECORD_MEMBERS; i++)
		add_member(out, &record_members[i], r);
	if (r->error != LOAD_ERROR_NONE)
		text_addf(out, ",\"error\":\"%s\"", load_error_word(r->error));
	if (r->flags)
		add_flags(out, r->flags);
	add_gaps(out, r);
	text_add(out, "}\n");
}
