/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a team through another program: ssh, mpirun or Slurm. Each function takes a checked plan. */
#ifndef LAUNCH_START_H
#define LAUNCH_START_H
#include "core/log.h"
#include "launch/ranks.h"
#include "launch/script.h"
#include <signal.h>

struct starting {
	const struct ranks_team *team;
	const volatile sig_atomic_t *stop, *preempted;
	bool saves; /* as in process_group.h */
	const struct log *log;
	/* Receives the stdout of a job. */
	void (*out)(const char *data, size_t size);
};

/* Starts the ranks of each node through one ssh per node, at most 32 at once, and waits until all have ended.
 * If a host cannot be used, the message names it with ssh's last line, and the other hosts' ranks are ended.
 */
enum status start_ssh(const struct launch_plan *p, const struct starting *s, int *exit_code,
		      struct error *err);

/* Which mpirun is on PATH. *mpich: true for MPICH's or Intel's, false for Open MPI's. */
enum status mpirun_is_mpich(bool *mpich, const volatile sig_atomic_t *stop, struct error *err);
enum status start_mpirun(const struct launch_plan *p, const struct starting *s, int *exit_code,
			 struct error *err);

/* Chooses the value of srun --mpi and its reason: "pmix" if the ranks use MPI and srun lists it, else "none".
 */
void slurm_plugin(struct launch_plan *p, const volatile sig_atomic_t *stop);
/* Is sbatch on PATH? */
bool slurm_is_here(void);
/* Submits the script. `keep`: file that the script is written to and that stays; NULL: a temporary file.
 * *job: the job's number. */
enum status slurm_submit(unsigned long *job, const struct launch_plan *p, const char *keep,
			 const struct starting *s, struct error *err);
/* Passes the job's output on until it has ended. A request to stop cancels the job. */
enum status slurm_follow(unsigned long job, const struct starting *s, int *exit_code, struct error *err);
#endif
