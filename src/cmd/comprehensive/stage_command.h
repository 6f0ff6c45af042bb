/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a child's command line, and the child that runs them. */
#ifndef CMD_COMPREHENSIVE_STAGE_COMMAND_H
#define CMD_COMPREHENSIVE_STAGE_COMMAND_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include "core/process/process.h"
#include "core/text/text.h"

/* Words are offsets into `text`, so the struct may be copied. Valid and empty when zeroed. */
struct stage_command {
	char text[8192];
	size_t used, word[48], count;
	bool full; /* a word did not fit */
};
void stage_command_add(struct stage_command *k, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Appends "assay load --rate 100 ..", quoted for a shell where it must be. */
void stage_command_text(struct text *out, const struct stage_command *k);

/* A command that runs; its stdout and stderr go to files. */
struct stage_child {
	struct process process;
	int output, messages; /* files */
	size_t written;
	bool running;
};
/* Starts it with DIR/output.txt and DIR/messages.txt. */
enum status stage_child_start(struct stage_child *child, const struct stage_command *k, const char *dir,
			      struct error *err);
/* Copies the output that has come. True once the child has ended. */
bool stage_child_poll(struct stage_child *child);
/* Asks it to end in an orderly way. */
void stage_child_ask(struct stage_child *child);
/* Waits up to limit_ms after asking, then ends it by force. */
void stage_child_stop(struct stage_child *child, unsigned limit_ms);
/* Its exit code; -1: a signal ended it, or it is stuck. `how`: in words. */
int stage_child_release(struct stage_child *child, char *how, size_t size);
#endif
