/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of `assay eval`: documents, whose tokens are scored, and questions, whose answers are function
 * calls. A file is plain text, which is one document, or has rows (data/rows/rows.h). A row is a
 * plain text in "text", token ids in "input_ids", or a conversation. A conversation with tools and an
 * expected answer is a question too.
 */
#ifndef CMD_EVAL_DATA_H
#define CMD_EVAL_DATA_H
#include "cmd/model/call_grammar.h"
#include "data/function_calls/answers.h"

struct eval_document {
	struct token_list ids;
	uint8_t *target; /* [ids.count] whether the token is scored; NULL: every token is */
	size_t line;	 /* of the file, from 1 */
};

struct eval_question {
	struct answer_task task;
	struct token_list ids; /* the prompt */
	char *grammar;	       /* the answer's grammar as its source; NULL: any text */
	size_t line;
};

struct eval_data {
	const char *path; /* lent from struct eval_data_ask */
	struct rows rows;
	struct tokenizer *tokenizer; /* NULL: every row has token ids */
	struct template *template;   /* NULL: there is no conversation */
	struct call_grammar grammar;
	struct eval_document *documents;
	size_t document_count;
	struct eval_question *questions;
	size_t question_count;
};

struct eval_data_ask {
	const char *path;      /* the file */
	const char *tokenizer; /* path; it is opened when a row needs it */
	const char *template;  /* name of a chat template; NULL: the model's own */
	size_t rows_max;       /* 0: all */
	bool questions;	       /* read questions too */
	enum call_grammar_mode grammar;
};
/*
 * If the template's family is known, only the assistant's texts of a conversation are scored. Otherwise all
 * of its tokens are. BAD_INPUT names file and line: no rows, a row of an unknown kind, or nothing to measure.
 * Owner: caller, eval_data_release, also after a failure.
 */
enum status eval_data_read(struct eval_data *d, const struct eval_data_ask *ask, struct error *err);
void eval_data_release(struct eval_data *d);
/* BAD_INPUT names the first row whose tokens differ. */
enum status eval_data_compare(const struct eval_data *a, const struct eval_data *b, struct error *err);
#endif
