/* SPDX-License-Identifier: Apache-2.0 */
/* assay generate --rows: an answer to each row, held against what the row accepts. */
#ifndef CMD_MODEL_GENERATE_ROWS_H
#define CMD_MODEL_GENERATE_ROWS_H
#include "cmd/command.h"
#include "model/generation/inference.h"
#include "model/chat/template.h"

struct generate_rows_ask {
	const char *rows, *out;		  /* files; out NULL: answers are counted, not written */
	uint64_t rows_max;		  /* the first so many; 0: all */
	const char *tokenizer, *template; /* as options have them */
	struct template_ask rendering;
	struct inference_options model; /* positions are found here */
	struct sampling sampling;
	uint64_t tokens; /* of an answer, at most */
	bool json;
};
enum status generate_rows(const struct command_context *c, const struct generate_rows_ask *ask,
			  struct error *err);
#endif
