/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank this process is, by what it was told or its launcher left in the environment. Pure. */
#ifndef TEAM_LAUNCHER_PLACE_H
#define TEAM_LAUNCHER_PLACE_H
#include <stdint.h>
#include "core/error.h"

/*
 * id, name, rank, size, local rank, local size, host of rank 0, its port, added to it, job. Variables: NULL
 * where it sets none. The first that is found counts. torchrun's own store holds MASTER_PORT. Slurm stands
 * last: it may have started any of the others, once a node, so its rank and size are then not ours.
 */
/* clang-format off */
#define TEAM_LAUNCHERS(X) \
	X(ASSAY, "assay launch", "ASSAY_RANK", "ASSAY_SIZE", "ASSAY_LOCAL_RANK", "ASSAY_LOCAL_SIZE", \
	  "ASSAY_HOST", "ASSAY_PORT", 0, NULL) \
	X(TORCHRUN, "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", \
	  "MASTER_ADDR", "MASTER_PORT", 1, "TORCHELASTIC_RUN_ID") \
	X(OPENMPI, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", \
	  "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL, NULL, 0, "PMIX_NAMESPACE") \
	X(PMI, "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, NULL, 0, NULL) \
	X(SLURM, "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, NULL, NULL, 0, NULL)
/* clang-format on */
#define X(id, ...) TEAM_##id,
enum team_launcher { TEAM_ALONE, TEAM_TOLD, TEAM_LAUNCHERS(X) };
#undef X

struct environment { /* getenv, or a test's table */
	const char *(*get)(void *arg, const char *name);
	void *arg;
};

struct team_place {
	enum team_launcher launcher;
	unsigned rank, size;
	unsigned local_rank, local_size; /* local_size 0: nobody told */
	char node[64];			 /* told, or SLURMD_NODENAME; "": the host's name */
	char host[256];			 /* of rank 0; "": nobody told */
	uint16_t port;			 /* 0: not told */
	char job[64];			 /* names the team and its secret's file: letters, digits, - _ . */
	char from[64];			 /* "torchrun (RANK, WORLD_SIZE)": for messages */
};

/* Texts as the command line gave them; NULL: not given. rank and size go together, and outrank the
 * environment. */
struct team_place_options {
	const char *rank, *size, *master /* HOST or HOST:PORT or [ADDRESS]:PORT */, *node;
};

/* BAD_INPUT names the variable: half a set, no number, a rank not below its size, two launchers that
 * disagree, several ranks and nobody told where rank 0 is. A team of one is TEAM_ALONE. */
enum status team_place(struct team_place *p, const struct team_place_options *o,
		       const struct environment *env, struct error *err);
/* --master by itself, as who starts ranks elsewhere is told it: BAD_INPUT names what it lacks. */
enum status team_place_check_master(const char *text, struct error *err);
#endif
