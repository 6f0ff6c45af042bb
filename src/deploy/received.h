/* SPDX-License-Identifier: Apache-2.0 */
/* Files that come back from a node, below a folder of this machine. A file gets its name only after its
 * checksum was found right. Until then it is in the folder itself, where the next one removes what a killed
 * process left. */
#ifndef DEPLOY_RECEIVED_H
#define DEPLOY_RECEIVED_H
#include <limits.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "deploy/answer.h"

enum { RECEIVED_FILES_MAX = 16384 };

struct received {
	char folder[PATH_MAX];
	size_t files;	/* received or found here */
	size_t whole;	/* received whole */
	size_t skipped; /* on the node: links and odd names */
	uint64_t bytes; /* received */
	uint64_t most;	/* bytes that are accepted in all */
	struct file_new file;
	char name[ANSWER_NAME], sum[65];
	bool open;
};

/* Appends "SHA256 NAME" lines of the files that are here, for node.sh. */
enum status received_list(struct text *out, const char *folder, struct error *err);
/* Takes FILE, DATA, DATA_END, SAME and SKIP. MISMATCH: a wrong checksum, too many files or too many bytes. */
enum status received_take(struct received *r, const struct answer_event *e, struct error *err);
/* Flushes what was received to the disk. Call it before the node deletes its files. */
enum status received_sync(const struct received *r, struct error *err);
/* Deletes the part of a file that did not arrive whole. */
void received_abandon(struct received *r);
#endif
