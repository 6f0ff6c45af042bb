/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of a training run on several ranks: how much of its last steps is computation, communication
 * and waiting. It is that of probe scaling (team/account), with the parts of each rank's own time. Every rank
 * has the figures of all ranks, so all come to the same account. Pure. docs/explanation/methods/scaling.md,
 * "Training".
 */
#ifndef TRAIN_RUN_RANK_ACCOUNT_H
#define TRAIN_RUN_RANK_ACCOUNT_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "team/account/step_breakdown.h"

/* Figures of one rank in one step. Times in seconds. */
struct rank_figures {
	double step_s;	   /* of the whole step */
	double drain_s;	   /* waiting for collectives */
	double compute_s;  /* forward, backward, optimizer, without that */
	double rows_s;	   /* waiting for rows */
	double save_s;	   /* waiting for a checkpoint to be written */
	double cpu_wait_s; /* a computing thread could run and no CPU was free: of the thread that waited
			      longest; within other parts; 0 with one rank */
	double tokens;	   /* of this rank */
	/* GPU; 0: not known */
	double clock_hz, slowed_share; /* SM clock; share of the time in which a limit held the clock down */
	double link_rate;	       /* PCIe now: generation times lanes */
	double tensor_share, memory_share,
		sm_share; /* active shares of tensor pipes, memory, multiprocessors */
};
enum {
	RANK_FIGURES = sizeof(struct rank_figures) / sizeof(double),
	RANK_GPU_FIGURES =
		offsetof(struct rank_figures, clock_hz) / sizeof(double), /* the first one of the GPU */
	RANK_WINDOW = 16
};

/* Seconds of the parts of the steps, mean over the ranks. */
struct rank_parts {
	double compute_s, exposed_s, waiting_s, rows_s, save_s, host_s;
};
/* The last steps of all ranks. */
struct rank_window {
	unsigned ranks;
	uint64_t steps;		      /* taken so far */
	struct rank_parts sum;	      /* all steps but the first */
	struct rank_figures *figures; /* [ranks * RANK_WINDOW], step s at index s % RANK_WINDOW */
};
double rank_parts_all_s(const struct rank_parts *p);
enum status rank_window_make(struct rank_window *w, unsigned ranks, struct error *err);
void rank_window_release(struct rank_window *w);
/* Adds a step. `all`: by rank. */
void rank_window_add(struct rank_window *w, const struct rank_figures *all);

/* Candidates for the cause of a late rank: name, text. */
/* clang-format off */
#define RANK_CAUSES(X) \
	X(HOST, "host") X(CPU, "no free CPU") X(DATA, "data") X(ROWS, "unequal rows") X(CLOCK, "clock") X(THROTTLE, "throttle") X(LINK, "link") \
	X(SAVE, "checkpoint") X(COMPUTE, "slower computation")
/* clang-format on */
#define X(name, text) RANK_CAUSE_##name,
enum rank_cause { RANK_CAUSES(X) RANK_CAUSE_COUNT };
#undef X
const char *rank_cause_text(enum rank_cause cause);

struct rank_late {
	int rank;			/* -1: no rank is late */
	double waited_share;		/* mean share of the step that the others wait */
	double last_share;		/* share of the steps in which it was the last one */
	double cpu_wait_s;		/* mean per step, as in struct rank_figures */
	double behind_s;		/* by which its own work takes longer than the median of the others */
	double share[RANK_CAUSE_COUNT]; /* share of behind_s that this candidate explains */
	enum rank_cause
		cause; /* the largest; CPU: also if a thread waited for one as long as the rank was late */
	char evidence[640]; /* every candidate with its figures */
};
struct rank_account {
	unsigned steps; /* in the account; 0: there is none yet, and all else is 0 */
	double step_s;
	/* Shares of the step, mean over the ranks; their sum is 1. */
	double compute, exposed, waiting, rows, save, host;
	struct rank_late late;
	double tensor_share, memory_share, sm_share; /* means; 0: not known */
};
/* Makes the account of the last RANK_WINDOW steps. A rank is late if it was last in RANK_LAST_SHARE of the
 * steps (one of two ranks: in all), and if the others waited for it at least RANK_LATE_SHARE of the step. */
#define RANK_LAST_SHARE 0.9
#define RANK_LATE_SHARE 0.1
enum status rank_account_make(struct rank_account *a, const struct rank_window *w, struct error *err);
#endif
