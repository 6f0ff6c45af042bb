/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rank of this process from its options or from the variables that its launcher set. No side
 * effects. */
#ifndef TEAM_LAUNCHER_PLACE_H
#define TEAM_LAUNCHER_PLACE_H
#include <stdint.h>
#include "core/error.h"

/*
 * id, name, rank, size, local rank, local size, host of rank 0, its port, number added to the port, job.
 * NULL: the launcher sets no such variable. The first launcher whose variables are set counts. torchrun adds
 * 1, because its own store uses MASTER_PORT. Slurm is last: it may have started one of the other launchers
 * once on each node, and then its rank and size are not those of this process.
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
	unsigned local_rank, local_size; /* local_size 0: not known */
	char node[64];			 /* option or SLURMD_NODENAME; "": the host's name */
	char host[256];			 /* of rank 0; "": not known */
	uint16_t port;			 /* 0: not given */
	char job[64];			 /* names the team and its secret's file: letters, digits, - _ . */
	char from[64];			 /* "torchrun (RANK, WORLD_SIZE)": for messages */
};

/* Option values as text; NULL: not given. rank and size must be given together, and override the environment.
 */
struct team_place_options {
	const char *rank, *size, *master /* HOST or HOST:PORT or [ADDRESS]:PORT */, *node;
};

/* BAD_INPUT names the variable: only one of two is set, it is not a number, a rank is not below its size, two
 * launchers disagree, or there are several ranks and the host of rank 0 is not known. A team of one is
 * TEAM_ALONE. */
enum status team_place(struct team_place *p, const struct team_place_options *o,
		       const struct environment *env, struct error *err);
/* Checks a --master value for ranks that are started elsewhere. BAD_INPUT says what is wrong. */
enum status team_place_check_master(const char *text, struct error *err);
#endif
