/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts for the four ways to start a team. A comment above each line gives its reason. The same functions
 * make the script that is printed, the one that is submitted and the commands that are executed. No side
 * effects.
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
	X(PLAIN, "plain", "this node only")            \
	X(SSH, "ssh", "a list of hosts")               \
	X(SLURM, "slurm", "a batch job")               \
	X(MPIRUN, "mpirun", "Open MPI's or MPICH's mpirun")
/* clang-format on */
#define X(id, name, text) LAUNCH_##id,
enum launch_how { LAUNCH_HOWS(X) LAUNCH_HOW_COUNT };
#undef X

/* All members are borrowed. The caller checks a filled plan with launch_check. */
struct launch_plan {
	enum launch_how how;
	const char *program, *build; /* absolute path; digits of PROCESS_BUILD */
	const char *folder;	     /* the working folder; NULL: not known */
	struct opt_words words;	     /* assay's arguments: "check", "quick", .. */
	unsigned nodes, ranks, gpus; /* number of nodes; ranks and GPUs on each */
	struct hosts hosts;	     /* for ssh and mpirun; may be empty for mpirun */
	const char *master;	     /* HOST or HOST:PORT where rank 0 listens; NULL: the default */
	struct opt_words env;	     /* "NAME=value" from --env */
	bool derive;		     /* each node sets the variables of env_derive */
	bool mpi;		     /* the ranks use MPI themselves */
	/* Shell words added to a command that a batch job may begin again (struct command's again); NULL:
	 * none */
	const char *again;
	const struct env_rows *rows;			 /* of `machine`, for display; NULL: not known here */
	const char *machine;				 /* "this machine", or the recording's label */
	const char *time, *partition, *account, *sbatch; /* for Slurm; NULL: not given */
	const char *plugin, *plugin_reason;		 /* value of srun --mpi */
	bool mpich;					 /* mpirun takes MPICH's options */
	const char *ssh_config;				 /* NULL: the user's own */
};

/* Appends the whole script. */
void script_write(struct text *t, const struct launch_plan *p);
/* Appends rows of kind SET as `export` lines, and the reasons of all rows as comments. */
void script_exports(struct text *t, const struct env_rows *rows);
/* Appends the ssh command for host `node`. Its last word is the command that the host executes, `assay
 * __ranks`, quoted for the host's shell. lifeline: the end of its input ends its ranks. Owner of all words:
 * caller, command_words_release. */
void script_ssh(struct command_words *w, const struct launch_plan *p, unsigned node, bool lifeline);
/* Appends the mpirun command with the command that it starts. */
void script_mpirun(struct command_words *w, const struct launch_plan *p);

/* Checks a plan. BAD_INPUT names the option: control characters, an --env that is not NAME=value or that
 * assay launch sets itself, a time that Slurm does not accept, or options that contradict each other. */
enum status launch_check(const struct launch_plan *p, struct error *err);
#endif
