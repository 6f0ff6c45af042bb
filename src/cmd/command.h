/* SPDX-License-Identifier: Apache-2.0 */
/* A subcommand is one file and one line in cmd/list.h. Help, completion and manual come from these rows. */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include "core/log.h"
#include "core/input/opt.h"

enum { EXIT_PASS = 0, EXIT_FAILED = 1, EXIT_INCONCLUSIVE = 2, EXIT_USAGE = 64 };

struct command_context {
	struct log *log;
	const volatile sig_atomic_t *stop;
	bool tells;	       /* a rank: how it ended is told to who started it (launch/rank_exit.h) */
	bool terminal;	       /* stderr is one: progress may be drawn */
	bool colour;	       /* stdout is one and NO_COLOR is not set */
	struct opt_words rest; /* words after "--", where the command takes some */
	int argc;	       /* the whole command line, for the record */
	char **argv;
};

struct command {
	const char *name, *summary;
	const char *example; /* one command line that works, with what it gives */
	const char *help;    /* a paragraph; NULL: none */
	/* Optional: --help with a first bare word that names a subject of its own (a probe). False: it names
	 * none. */
	bool (*help_topic)(FILE *to, const char *word);
	/* Optional: what of its words is wrong wherever they are run. UNAVAILABLE: a file is not here. */
	enum status (*check)(const void *opts, struct error *err);
	/* Optional: the options that this command takes as words, NAME=VALUE; NULL: its words name none. */
	const struct opt_table *(*word_opts)(int argc, char *const *argv);
	struct opt_table opts;
	const char *rest; /* as help writes what stands behind the options: "-- PROGRAM"; NULL: nothing may */
	bool hidden;	  /* __worker and its kin */
	bool single;	  /* works as one process: of several ranks each would do all of it */
	bool alone;	  /* of files or of this program: launched ranks would all do the same */
	bool stops_unread; /* PIPE, when nobody reads the output any more, asks to stop as TERM does */
	bool raw;	   /* parses argv itself (hidden ones) */
	int (*run)(const struct command_context *c, const void *opts);
	int (*run_raw)(const struct command_context *c, int argc, char **argv);
};
extern const struct command *const command_list[]; /* NULL ends */
#endif
