/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is said about commands, options, probes and closed lists, from their tables. */
#ifndef CMD_HELP_HELP_H
#define CMD_HELP_HELP_H
#include <stdio.h>
#include "cmd/command.h"
#include "core/text/text.h"

struct probe;

void help_overview(FILE *to);
void help_command(FILE *to, const struct command *cmd);
/* What a probe is, its engines and its options (name=value). */
void help_probe(FILE *to, const struct probe *p);
/* NULL with the nearest name in the message. */
const struct probe *help_probe_named(const char *name, struct error *err);
/* "unknown command 'chek': did you mean 'check'?" */
void help_unknown_command(const char *name, struct error *err);
/* "run,timing" or "all" to bits. */
enum status help_debug_topics(const char *list, unsigned *topics, struct error *err);
/* The option rows of a table, two columns; a probe's are written name=value, a command's --name value. */
enum help_style { HELP_COMMAND, HELP_PROBE };
void help_options(struct text *out, const struct opt_table *t, enum help_style style);
/* "BYTES", "N", "FILE", "a|b|c": what stands for the option's value. */
void help_value_word(const struct opt *row, char *out, size_t size);
#endif
