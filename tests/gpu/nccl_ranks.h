/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of NCCL as threads of a test program: a device, a stream, two buffers each, and steps that all take.
 */
#ifndef TESTS_GPU_NCCL_RANKS_H
#define TESTS_GPU_NCCL_RANKS_H
#include <pthread.h>
#include <stdbool.h>
#include "gpu/device/gpu.h"
#include "vendor/nccl.h"

enum { NCCL_RANKS = 16 };

struct nccl_crew {
	struct nccl nccl;
	unsigned ranks;
	uint64_t bytes; /* of each buffer */
	pthread_barrier_t barrier;
	ncclUniqueId id;
	gpu_ptr memory[NCCL_RANKS]; /* each rank's receive */
	double number[NCCL_RANKS];  /* a step's, by rank */
	ncclResult_t result[NCCL_RANKS];
	bool failed; /* somewhere: all leave at the next meeting */
	char why[640];
};

struct nccl_rank {
	struct nccl_crew *crew;
	unsigned rank;
	struct gpu_device *device;
	struct gpu_stream *stream, *beside;
	struct gpu_event *event[2];
	ncclComm_t comm;
	gpu_ptr send, receive;
};

/* All come; false where one of them has failed before. */
bool crew_meet(struct nccl_rank *k);
/* This rank's failure, with the first words kept. */
void crew_fail(struct nccl_rank *k, const char *what, ncclResult_t r, const struct error *err);
/* The greatest number that the ranks have left since, after a meeting. */
double crew_most(const struct nccl_crew *c);

/* A communicator of all; `blocking` and CTAs go into its configuration (0: NCCL's), environment as it stands.
 */
bool crew_comm(struct nccl_rank *k, bool blocking, int ctas);
void crew_comm_end(struct nccl_rank *k);
/* us an all-reduce of bf16 (sum) over `bytes`: `calls` in a row, or as many graphs of 20; the slowest rank's.
 */
double crew_time(struct nccl_rank *k, uint64_t bytes, unsigned calls, bool graph);

/* Runs `step` on a thread a rank; false: it could not, or a rank failed, and c->why says it. */
bool crew_run(struct nccl_crew *c, void (*step)(struct nccl_rank *k));
/* UNAVAILABLE where there are not two devices, or no NCCL. */
enum status crew_open(struct nccl_crew *c, unsigned most, uint64_t bytes, struct error *err);
#endif
