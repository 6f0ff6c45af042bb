/* SPDX-License-Identifier: Apache-2.0 */
/* Prints help for commands, options and probes from their tables. */
#ifndef CMD_HELP_HELP_H
#define CMD_HELP_HELP_H
#include <stdio.h>
#include "cmd/command.h"
#include "core/text/text.h"

struct engine;
struct probe;

void help_overview(FILE *to);
void help_command(FILE *to, const struct command *cmd);
/* Prints a probe's summary, engines and options (name=value). */
void help_probe(FILE *to, const struct probe *p);
/* Appends where an engine runs and the libraries that it needs: "on GPU; needs cublaslt cuda". */
void help_engine(struct text *out, const struct engine *e);
/* Finds a probe by name. NULL if there is none; the message suggests the nearest name. */
const struct probe *help_probe_named(const char *name, struct error *err);
/* Sets a message such as "unknown command 'chek': did you mean 'check'?". */
void help_unknown_command(const char *name, struct error *err);
/* Converts "run,timing" or "all" to topic bits. */
enum status help_debug_topics(const char *list, unsigned *topics, struct error *err);
/* Prints the option rows of a table in two columns. A probe's options have the form name=value, a
 * command's --name value. */
enum help_style { HELP_COMMAND, HELP_PROBE };
void help_options(struct text *out, const struct opt_table *t, enum help_style style);
/* The placeholder for the option's value: "BYTES", "N", "FILE", "a|b|c". The longest list of choices fits
 * into HELP_WORD_BYTES. */
enum { HELP_WORD_BYTES = 512 };
void help_value_word(const struct opt *row, char *out, size_t size);
#endif
