/* SPDX-License-Identifier: Apache-2.0 */
/* A training run on several ranks: the supervisor's side (docs/explanation/design/mesh.md). Every function
 * does nothing, and returns OK, if this process is the only rank. */
#ifndef CMD_TRAIN_RANKS_H
#define CMD_TRAIN_RANKS_H
#include "cmd/running/team.h"
#include "core/process/process.h"
#include "team/links/wait_board.h"

struct training;

struct train_ranks { /* zeroed: one rank */
	struct running_team team;
	struct running_opts joins;
	struct command_context context; /* rank 0's own; of the others with `log` */
	struct log log;			/* of ranks other than 0: warnings and errors, with the rank's name */
	const struct log *through;
	char name[64], nonce[33], secret[33];
	int port;	 /* at which rank 0's worker listens; -1: not said yet */
	bool begun;	 /* all ranks have begun the run */
	bool over, fell; /* the team has ended; another rank's worker has ended badly */
	uint64_t fell_ns;
	struct error why;	  /* why the team has ended */
	struct team_board *board; /* of the worker, with its flight record; NULL: none */
	int board_fd;
	/* The worker when it was found to hang: its state as in /proc/PID/stat (0: it was not), and what its
	 * main thread did. */
	char state, place[240];
};

/* Finds the number of this rank, joins the others, and from then on logs with this rank's name. */
enum status train_ranks_join(struct training *t, struct error *err);
bool train_ranks_several(const struct training *t);
/* True on the rank that has the run directory and prints. */
bool train_ranks_leads(const struct training *t);
/* If the configuration asks for several GPUs and no launcher started this process: becomes assay launch with
 * the same command line, and does not return. BAD_INPUT: the machine has fewer. */
enum status train_ranks_spread(const struct training *t, struct error *err);
/* Whether another step of the start is possible: `mine` is this rank's status. *err names the first rank that
 * has an error. Ranks other than that one and rank 0 then log nothing. `what`: equal on all ranks. */
enum status train_ranks_agree(struct training *t, const char *what, enum status mine, struct error *err);
/* Compares the configurations: BAD_INPUT names the first line that differs. A resumed run's other ranks take
 * rank 0's. */
enum status train_ranks_compare_config(struct training *t, struct error *err);
/* Gives rank 0's configuration, with its choices for this machine, to all ranks. */
enum status train_ranks_take_config(struct training *t, struct error *err);
/* BAD_INPUT: this rank's GPU is of another type than that of rank 0. All ranks call it, also those without a
 * GPU. */
enum status train_ranks_compare_gpu(struct training *t, struct error *err);
/* Gives the path of rank 0's run directory to all; the others use DIR.rank-R, which is cleared. */
enum status train_ranks_dir(struct training *t, struct error *err);
/* Gives what rank 0 found in the run directory to all. */
enum status train_ranks_share(struct training *t, bool *finished, bool *goes_on, struct error *err);
/* PCI address of the GPU that belongs to this rank, "" if there is none; NULL: one rank, which may take any.
 */
const char *train_ranks_gpu(const struct training *t);
/* Ranks of this node. */
unsigned train_ranks_local(const struct training *t);
/* Gives the name of rank 0's CPU kernels to all. */
enum status train_ranks_kernels(struct training *t, char *name, size_t size, struct error *err);
/* Begins the run on all ranks. `mine`: an error of this rank. */
enum status train_ranks_begin(struct training *t, const struct error *mine, struct error *err);
/* The worker's place among the ranks, for its first line. Owner: caller; NULL: one rank. Ranks other than 0
 * wait until rank 0's worker listens. */
enum status train_ranks_place(struct training *t, json_t **place, struct error *err);
/* Rank 0: tells the others where its worker listens, once the worker has said it. */
enum status train_ranks_announce(struct training *t, struct error *err);
/* Between reads of the worker's lines: follows the other ranks, and ends the worker if one of them failed. */
void train_ranks_attend(struct training *t);
/* The number of descriptors to poll, at most `room`. */
unsigned train_ranks_fds(const struct training *t, struct pollfd *out, unsigned room);
/* The worker hangs: notes its state before it is killed. */
void train_ranks_hung(struct training *t);
/* After the worker has ended: waits for the others. If another rank ended the run, t->end names it. */
void train_ranks_end(struct training *t);
/* After the journal is closed: rank 0 collects the journals. */
void train_ranks_collect(struct training *t);
/* The exit code for the launcher, after which the team is left. */
int train_ranks_leave(struct training *t, int code);
#endif
