/* SPDX-License-Identifier: Apache-2.0 */
/* HTML and Markdown of a stage, for the pages of commands that run stages. */
#ifndef CMD_STAGES_STAGE_PAGE_H
#define CMD_STAGES_STAGE_PAGE_H
#include "cmd/stages/stage_result.h"

/* Appends a verdict as a badge. */
void stage_page_verdict(struct text *out, enum stage_verdict verdict);
/* Appends a paragraph; nothing for "". */
void stage_page_paragraph(struct text *out, const char *s);
/* Appends the command as a shell would take it. */
void stage_page_command(struct text *out, const struct stage_command *k);
/* Appends the table of figures; nothing if there are none. */
void stage_page_figures(struct text *out, const json_t *figures);
/* Appends the end of messages.txt in `dir`, with a title; nothing if it is empty. */
void stage_page_messages(struct text *out, const char *dir);
/* Appends the text of a cell of a Markdown table: without bars and line ends, which would end it. */
void stage_page_cell(struct text *out, const char *s);
#endif
