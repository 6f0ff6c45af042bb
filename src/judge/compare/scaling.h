/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaling over runs with different numbers of ranks: the efficiency of each, and where its time goes beyond
 * that of the run with the fewest ranks. Training runs and cases of probe scaling have the same account.
 * docs/explanation/methods/scaling.md, "Several runs".
 */
#ifndef JUDGE_COMPARE_SCALING_H
#define JUDGE_COMPARE_SCALING_H
#include "judge/compare/compare.h"

/* name, head of the column, settings and hardware that decide it */
/* clang-format off */
#define SCALED_PARTS(X) \
	X(COMPUTE, "computation", "the clocks of the GPUs (assay check), CPU cores that several ranks share, and the tokens per rank and step (per_device_train_batch_size, global_batch_size)") \
	X(COMMUNICATION, "communication", "gradient_accumulation_steps, bucket_cap_mb, NCCL_NVLS_ENABLE=1 on NVSwitch, and the number of nodes") \
	X(WAITING, "waiting", "the late rank's machine: its clock, host, disk and link. With unequal rows, use a larger global_batch_size or packing") \
	X(ROWS, "rows", "data: cache_dir, the length of the rows, and the number of CPUs") \
	X(SAVE, "checkpoints", "save_steps and the speed of the disk") \
	X(HOST, "host", "training: graphs, per_device_train_batch_size, and the ranks per CPU")
/* clang-format on */
#define X(name, ...) SCALED_##name,
enum scaled_part { SCALED_PARTS(X) SCALED_COUNT };
#undef X
const char *scaled_part_text(enum scaled_part part);

struct scaled_run {
	const char *run; /* lent: the name of its folder */
	char late[720];	 /* the late rank with its causes; "": none */
	unsigned ranks;
	double rate;		    /* tokens/s of all ranks */
	double tokens;		    /* of one rank and step; 0: unknown */
	double share[SCALED_COUNT]; /* of the ranks' time */
	/* Set by compare_scaling_explain, in shares of this run's time; their sum is 1 - efficiency. */
	double efficiency, lost[SCALED_COUNT];
	enum scaled_part largest; /* with the largest loss */
	bool small_batch; /* a rank has clearly fewer tokens per step than in the first run, and the loss is
			     of that kind */
	char text[1200];  /* explanation; "": nothing is lost */
};

enum { SCALED_RUNS = 32 };
struct scaled_runs {
	struct scaled_run run[SCALED_RUNS]; /* by ranks */
	size_t count;
};
/* Collects the runs that train, or else the cases of probe scaling, and explains them. False: they do not
 * have several numbers of ranks, or not the same model. */
bool compare_scaling(struct scaled_runs *out, const struct compare_run *runs, size_t count);
/* Pure: compares each run with the first one, which has the fewest ranks. */
void compare_scaling_explain(struct scaled_runs *r);
#endif
