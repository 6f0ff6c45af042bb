/* SPDX-License-Identifier: Apache-2.0 */
/* Receives the files that one other rank sends. The data is not trusted: names come from a fixed table, and
 * sizes have a limit. Each file is written under a temporary name and renamed when it is complete. */
#ifndef TEAM_CONTROL_COLLECT_RECEIVE_H
#define TEAM_CONTROL_COLLECT_RECEIVE_H
#include <stdbool.h>
#include <stdint.h>
#include "core/file/file.h"

enum { COLLECT_PATH = 4096, COLLECT_FILES = 2 };

struct collect_row {
	const char *name;
	uint64_t most; /* bytes at most */
};
extern const struct collect_row collect_rows[COLLECT_FILES];

struct collect_in { /* valid when zeroed but for dir */
	char dir[COLLECT_PATH];
	struct file_new file;
	bool open;
	unsigned row;  /* of the open file */
	uint64_t left; /* bytes of it still expected */
	uint64_t bytes;
	unsigned taken; /* complete files, one bit for each row */
};

/* Parses {"name":"journal.jsonl","size":123} (fuzzed). BAD_INPUT: another form, a name that is not in the
 * table, or a size over the limit. */
enum status collect_head(const void *head, size_t size, unsigned *row, uint64_t *bytes, struct error *err);
/* Removes the files that an earlier run left there. */
void collect_forget(const struct collect_in *in);
/* Begins a file. BAD_INPUT: its head is invalid, it came already, or another file is still incomplete. */
enum status collect_file(struct collect_in *in, const void *head, size_t size, struct error *err);
/* Appends to the open file; the last byte closes it. BAD_INPUT: more bytes than announced, or no open file.
 */
enum status collect_data(struct collect_in *in, const void *bytes, size_t size, struct error *err);
/* Ends the transfer and removes an incomplete file. False: there was one. */
bool collect_close(struct collect_in *in);
#endif
