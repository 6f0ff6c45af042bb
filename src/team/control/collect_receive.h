/* SPDX-License-Identifier: Apache-2.0 */
/* Files that one other rank sends: names from a table, sizes with a limit, each written beside and renamed
 * when it is whole. What comes is not trusted. */
#ifndef TEAM_CONTROL_COLLECT_RECEIVE_H
#define TEAM_CONTROL_COLLECT_RECEIVE_H
#include <stdbool.h>
#include <stdint.h>
#include "core/file/file.h"

enum { COLLECT_PATH = 4096, COLLECT_FILES = 2 };

struct collect_row {
	const char *name;
	uint64_t most; /* bytes */
};
extern const struct collect_row collect_rows[COLLECT_FILES];

struct collect_in { /* valid when zeroed but for dir */
	char dir[COLLECT_PATH];
	struct file_new file;
	bool open;
	unsigned row;  /* of the open file */
	uint64_t left; /* bytes of it yet to come */
	uint64_t bytes;
	unsigned taken; /* files that are whole, a bit a row */
};

/* {"name":"journal.jsonl","size":123} of the table above (fuzzed); BAD_INPUT else. */
enum status collect_head(const void *head, size_t size, unsigned *row, uint64_t *bytes, struct error *err);
/* What an earlier run left there goes: it is nobody's of this team. */
void collect_forget(const struct collect_in *in);
/* A file begins: BAD_INPUT where its head is not sound, it came already, or another is not whole yet. */
enum status collect_file(struct collect_in *in, const void *head, size_t size, struct error *err);
/* More of it; the last byte closes it. BAD_INPUT: more than was told, or no file is open. */
enum status collect_data(struct collect_in *in, const void *bytes, size_t size, struct error *err);
/* No more will come: what is not whole is taken away. False: there was such a file. */
bool collect_close(struct collect_in *in);
#endif
