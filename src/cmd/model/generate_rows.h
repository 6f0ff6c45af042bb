/* SPDX-License-Identifier: Apache-2.0 */
/* assay generate --rows: generates an answer to each row and compares it with the calls that the row
 * accepts. */
#ifndef CMD_MODEL_GENERATE_ROWS_H
#define CMD_MODEL_GENERATE_ROWS_H
#include "cmd/command.h"
#include "cmd/model/call_grammar.h"
#include "engine/engine.h"
#include "text/chat/template.h"

struct generate_rows_ask {
	const char *rows, *out;		  /* files; out NULL: answers are counted, not written */
	uint64_t rows_max;		  /* use only the first N rows; 0: all */
	const char *tokenizer, *template; /* values of the options */
	struct template_ask rendering;
	struct load_options model; /* the number of positions is set here */
	struct engine_sampling sampling;
	uint64_t tokens; /* maximum tokens per answer */
	enum call_grammar_mode grammar;
	bool json;
};
enum status generate_rows(const struct command_context *c, const struct generate_rows_ask *ask,
			  struct error *err);
#endif
