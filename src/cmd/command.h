/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a subcommand. Each subcommand has one file and one line in cmd/list.h. Help, shell
 * completion and the manual page are generated from these descriptions. */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include "core/log.h"
#include "core/input/opt.h"

/* EXIT_SAVED: stopped by TERM or USR1 after saving; the same command with --resume continues (EX_TEMPFAIL).
 */
enum { EXIT_PASS = 0, EXIT_FAILED = 1, EXIT_INCONCLUSIVE = 2, EXIT_USAGE = 64, EXIT_SAVED = 75 };

struct command_context {
	struct log *log;
	const volatile sig_atomic_t *stop;
	/* The first request to stop was TERM or USR1: not from a person, but from a scheduler or launcher. */
	const volatile sig_atomic_t *preempted;
	bool tells;    /* this process is a rank and reports its end to its launcher (launch/rank_exit.h) */
	bool terminal; /* stderr is a terminal: progress may be drawn */
	bool colour;   /* stdout is a terminal and NO_COLOR is not set */
	struct opt_words rest; /* words after "--", if the command accepts them */
	int argc;	       /* the whole command line, for the journal */
	char **argv;
};

struct command {
	const char *name, *summary;
	const char *example; /* one working command line, with a comment about its result */
	const char *help;    /* paragraphs, separated by an empty line; NULL: none */
	/* Optional. Prints help for a topic of its own (a probe) if --help follows such a word. False: the
	 * word is no topic. */
	bool (*help_topic)(FILE *to, const char *word);
	/* Optional. Finds errors in the options that are errors on any machine. UNAVAILABLE: a file is not
	 * on this machine. */
	enum status (*check)(const void *opts, struct error *err);
	/* Optional. The options that the command takes as NAME=VALUE words; NULL if its words name none. */
	const struct opt_table *(*word_opts)(int argc, char *const *argv);
	struct opt_table opts;
	const char
		*rest; /* the words after the options, as help shows them: "-- PROGRAM"; NULL: not accepted */
	bool hidden;   /* __worker and other internal commands */
	bool single;   /* not supported on several ranks: each rank would do all of the work */
	bool mpi_on_cpus;  /* its ranks communicate by MPI if they have no GPU */
	bool saves;	   /* on TERM and USR1 its ranks save, and it can be continued (EXIT_SAVED) */
	bool alone;	   /* works on files or on this program only: all launched ranks would do the same */
	bool stops_unread; /* a closed output pipe (SIGPIPE) requests a stop, as TERM does */
	bool raw;	   /* parses argv itself (hidden commands) */
	/* Optional. Maps the exit code to the one that the program's caller needs. argv: the words after the
	 * command's name. */
	int (*code_for_caller)(int argc, char *const *argv, int code);
	/* Optional. Shell words that a batch job adds, so that the command continues its run when the job
	 * begins again. Each follows a blank. $run is a directory of the job. NULL: not with these options.
	 */
	const char *(*again)(const void *opts);
	int (*run)(const struct command_context *c, const void *opts);
	int (*run_raw)(const struct command_context *c, int argc, char **argv);
};
extern const struct command *const command_list[]; /* NULL ends */

/* The exit code of a command that ended with this status: EXIT_PASS, EXIT_USAGE for BAD_INPUT, else
 * EXIT_INCONCLUSIVE. */
int command_code(enum status st);
/* Logs the error and returns its exit code. */
int command_complain(const struct command_context *c, const struct error *err);
#endif
