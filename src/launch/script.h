/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts of the four ways to start a team, each line with its reason as a comment above it. What is
 * shown, what is submitted and what is executed comes from the same functions. Pure.
 */
#ifndef LAUNCH_SCRIPT_H
#define LAUNCH_SCRIPT_H
#include "core/input/opt.h"
#include "core/text/text.h"
#include "launch/env.h"
#include "launch/hosts.h"
#include "launch/command_words.h"

/* name, meaning */
/* clang-format off */
#define LAUNCH_HOWS(X) \
	X(PLAIN, "plain", "this node alone")           \
	X(SSH, "ssh", "a list of hosts")               \
	X(SLURM, "slurm", "a batch job")               \
	X(MPIRUN, "mpirun", "by Open MPI's or MPICH's mpirun")
/* clang-format on */
#define X(id, name, text) LAUNCH_##id,
enum launch_how { LAUNCH_HOWS(X) LAUNCH_HOW_COUNT };
#undef X

/* All lent. Texts are checked by who fills it (launch_check): no control characters. */
struct launch_plan {
	enum launch_how how;
	const char *program, *build; /* absolute path; PROCESS_BUILD's digits */
	const char *folder;	     /* the working folder; NULL: not known */
	struct opt_words words;	     /* of assay: "check", "quick", .. */
	unsigned nodes, ranks, gpus; /* nodes; ranks and GPUs of each */
	struct hosts hosts;	     /* ssh; mpirun may have none */
	const char *master;	     /* HOST or HOST:PORT where rank 0 listens; NULL: as the way has it */
	struct opt_words env;	     /* "NAME=value": told by the user */
	bool derive;		     /* each node sets what its machine asks for */
	bool mpi;		     /* the ranks do MPI of their own */
	const struct env_rows *rows; /* what `machine` asks for, to be shown; NULL: not known here */
	const char *machine;	     /* "this machine", or the recording's label */
	const char *time, *partition, *account, *sbatch; /* Slurm; NULL: none */
	const char *plugin, *plugin_reason;		 /* of srun --mpi */
	bool mpich;					 /* how mpirun wants its words */
	const char *ssh_config;				 /* NULL: the user's own */
};

/* The whole script. */
void script_write(struct text *t, const struct launch_plan *p);
/* `name=value` rows as `export` lines, each with its reason. */
void script_exports(struct text *t, const struct env_rows *rows);
/* What a node executes: the program as `assay __ranks`. lifeline: the end of its input ends its ranks. Owner
 * of all words: caller, command_words_release. */
void script_ranks(struct command_words *w, const struct launch_plan *p, unsigned node, bool lifeline);
/* The ssh to host `node`; its last word is script_ranks's, quoted for the host's shell. */
void script_ssh(struct command_words *w, const struct launch_plan *p, unsigned node, bool lifeline);
/* mpirun and what it starts. */
void script_mpirun(struct command_words *w, const struct launch_plan *p);

/* BAD_INPUT names the word: control characters, an --env that is no NAME=value or is ours, a time that Slurm
 * does not take, ways whose options do not fit together. */
enum status launch_check(const struct launch_plan *p, struct error *err);
#endif
