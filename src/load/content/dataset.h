/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations of a file as prompts: each message of a user that has an answer is one. Rows that have none
 * are passed over. A conversation goes on with the row after it if more turns are needed, and with the first
 * row after the last one.
 */
#ifndef LOAD_CONTENT_DATASET_H
#define LOAD_CONTENT_DATASET_H
#include <stdint.h>
#include "core/text/text.h"
#include "text/chat/chat.h"

struct dataset;
/* `path`: a file of rows (data/rows/rows.h), or bfcl-eval's folder bfcl_eval/data. Errors begin with the
 * path. Owner: caller, dataset_close. */
enum status dataset_open(struct dataset **out, const char *path, struct error *err);
void dataset_close(struct dataset **d); /* NULL-safe; sets NULL */
uint64_t dataset_rows(const struct dataset *d);

/* Whether a prompt and its answer are to be used; the answer is as its text, calls included. */
typedef enum status dataset_accept(void *arg, const char *prompt, const char *answer, bool *accepted,
				   struct error *err);

struct dataset_prompt {
	struct chat chat;   /* of its row */
	const char *system; /* text of the system's messages; NULL: none, or not the first of the row */
	const char *user;   /* points into the chat */
	struct text answer;
};
/* The prompt `turn` of the conversation that begins at this row. `accept` NULL: all are used. BAD_INPUT with
 * file and line: a row that is not a conversation; with the file: no row has a prompt. Owner: caller,
 * dataset_prompt_release. */
enum status dataset_find(const struct dataset *d, uint64_t row, uint32_t turn, dataset_accept *accept,
			 void *arg, struct dataset_prompt *out, struct error *err);
void dataset_prompt_release(struct dataset_prompt *p);
#endif
