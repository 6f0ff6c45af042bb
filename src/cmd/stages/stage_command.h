/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a child's command line, and the child that runs them. */
#ifndef CMD_STAGES_STAGE_COMMAND_H
#define CMD_STAGES_STAGE_COMMAND_H
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
/* Adds each of these words; NULL ends the list. */
void stage_command_words(struct stage_command *k, const char *const *words);
/* Appends "assay load --rate 100 ..", quoted for a shell where it must be. */
void stage_command_text(struct text *out, const struct stage_command *k);
/* The seconds that a suite expects to take: runs the command (without --out) with --plan --json. 0: no plan
 * could be made. */
double stage_command_plan_s(const struct stage_command *k, const volatile sig_atomic_t *stop);

/* The lines of a child whose stderr is a terminal. */
struct stage_lines {
	void (*line)(void *arg, const char *line); /* gets each whole line; NULL: nobody */
	void *arg;
	char open[1024]; /* the line that is being written, after the last carriage return */
	size_t used;
	int escape;	 /* where in an escape sequence the bytes ended */
	char live[1024]; /* the latest progress, as the child drew it; "": none */
};
/* Takes bytes that a program wrote to its terminal. */
void stage_lines_take(struct stage_lines *l, const char *bytes, size_t size);

/* The receiver of each whole line of a child's stderr. */
struct stage_watch {
	void (*line)(void *arg, const char *line);
	void *arg;
};

/* A command that runs; its stdout and stderr go to files. */
struct stage_child {
	struct process process;
	int output, messages; /* files */
	int terminal;	      /* our end of the child's stderr; -1: its messages go to the file directly */
	struct stage_lines lines;
	struct stage_watch watch;
	size_t written;
	uint64_t began_ns, asked_ns; /* 0: not asked to end */
	bool running, late;	     /* late: it took longer than its limit */
};
/* Starts it with DIR/output.txt and DIR/messages.txt. Its stdin is empty. `watch` NULL: its stderr is a file,
 * and it draws no progress. Otherwise its stderr is a terminal. */
enum status stage_child_start(struct stage_child *child, const struct stage_command *k, const char *dir,
			      const struct stage_watch *watch, struct error *err);
/* Copies the output that has come. True once the child has ended. */
bool stage_child_poll(struct stage_child *child);
/* Passes the first request to stop on to the child. True if the child has to end by force: it ran longer than
 * limit_s, it did not end within a minute after that request, or there was a second request. */
bool stage_child_over(struct stage_child *child, double limit_s, const volatile sig_atomic_t *stop);
/* Ends by force a child for which stage_child_over is true. */
void stage_child_force(struct stage_child *child);
/* Waits up to limit_ms after asking, then ends it by force. */
void stage_child_stop(struct stage_child *child, unsigned limit_ms);
/* Its exit code; -1: a signal ended it, or it is stuck. `how`: in words. */
int stage_child_release(struct stage_child *child, char *how, size_t size);
#endif
