/* SPDX-License-Identifier: Apache-2.0 */
/* The three ways that others carry out: ssh, mpirun, Slurm. Each takes a checked plan. */
#ifndef LAUNCH_START_H
#define LAUNCH_START_H
#include "core/log.h"
#include "launch/ranks.h"
#include "launch/script.h"
#include <signal.h>

struct starting {
	const struct ranks_team *team;
	const volatile sig_atomic_t *stop;
	const struct log *log;
	/* What a job says on its stdout. */
	void (*out)(const char *data, size_t size);
};

/* A node's ranks through one ssh each, at most 32 on the way at once, until all have ended. A host that
 * cannot be used is named with the last line that ssh said, and the others are ended. */
enum status start_ssh(const struct launch_plan *p, const struct starting *s, int *exit_code,
		      struct error *err);

/* Whose mpirun is on PATH: true MPICH's (or Intel's), false Open MPI's. */
enum status mpirun_is_mpich(bool *mpich, const volatile sig_atomic_t *stop, struct error *err);
enum status start_mpirun(const struct launch_plan *p, const struct starting *s, int *exit_code,
			 struct error *err);

/* What srun --mpi is to be, and why: "pmix" where the ranks do MPI and srun lists it, else "none". */
void slurm_plugin(struct launch_plan *p, const volatile sig_atomic_t *stop);
/* Is sbatch on PATH? */
bool slurm_is_here(void);
/* Submits the script; `keep`, unless NULL, is the file it is written to and left in. *job: its number. */
enum status slurm_submit(unsigned long *job, const struct launch_plan *p, const char *keep,
			 const struct starting *s, struct error *err);
/* Passes its output on until it has ended. A request to stop cancels it. */
enum status slurm_follow(unsigned long job, const struct starting *s, int *exit_code, struct error *err);
#endif
