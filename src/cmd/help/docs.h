/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that `assay __docs` writes, generated from the tables of commands and probes. */
#ifndef CMD_HELP_DOCS_H
#define CMD_HELP_DOCS_H
#include "cmd/command.h"
#include "core/text/text.h"

void docs_manual(struct text *out);
void docs_bash(struct text *out);
void docs_zsh(struct text *out);
#endif
