/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a record's JSON line: one table for the writer and the reader. */
#ifndef LOAD_RECORD_RECORD_MEMBERS_H
#define LOAD_RECORD_RECORD_MEMBERS_H
#include "load/record/record.h"

enum member_kind {
	MEMBER_INDEX, /* uint64_t */
	MEMBER_TIME,  /* uint64_t; absent: LOAD_NEVER */
	MEMBER_U32,
	MEMBER_COUNT /* int64_t; absent: LOAD_UNKNOWN */
};
struct record_member {
	const char *name;
	size_t offset;
	enum member_kind kind;
};
#define RECORD_MEMBER(name, kind)                                                                            \
	{                                                                                                    \
#name, offsetof(struct load_record, name), MEMBER_##kind                                     \
	}
/* The times stand in the order in which they happen. */
static const struct record_member record_members[] = {
	RECORD_MEMBER(index, INDEX),	    RECORD_MEMBER(stage, U32),
	RECORD_MEMBER(session, U32),	    RECORD_MEMBER(turn, U32),
	RECORD_MEMBER(scheduled_ns, TIME),  RECORD_MEMBER(handed_ns, TIME),
	RECORD_MEMBER(connected_ns, TIME),  RECORD_MEMBER(sent_ns, TIME),
	RECORD_MEMBER(first_byte_ns, TIME), RECORD_MEMBER(first_token_ns, TIME),
	RECORD_MEMBER(last_token_ns, TIME), RECORD_MEMBER(end_ns, TIME),
	RECORD_MEMBER(prompt_asked, U32),   RECORD_MEMBER(output_asked, U32),
	RECORD_MEMBER(prompt_usage, COUNT), RECORD_MEMBER(output_usage, COUNT),
	RECORD_MEMBER(cached, COUNT),	    RECORD_MEMBER(output_counted, COUNT),
	RECORD_MEMBER(chunks, U32),	    RECORD_MEMBER(blanks, U32),
	RECORD_MEMBER(status, U32),
};
enum { RECORD_MEMBERS = sizeof(record_members) / sizeof(record_members[0]) };

static const struct {
	uint32_t flag;
	const char *word;
} record_flags[] = {
	{LOAD_FLAG_NO_DONE, "no_done"},	      {LOAD_FLAG_NO_FINISH, "no_finish"},
	{LOAD_FLAG_DUPLICATE, "duplicate"},   {LOAD_FLAG_NO_USAGE, "no_usage"},
	{LOAD_FLAG_AFTER_DONE, "after_done"}, {LOAD_FLAG_RESENT, "resent"},
	{LOAD_FLAG_LOW_USAGE, "low_usage"},
};
enum { RECORD_FLAGS = sizeof(record_flags) / sizeof(record_flags[0]) };
#endif
