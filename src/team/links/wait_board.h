/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waited where: shared memory from a worker to its supervisor (a sealed memfd, the child's descriptor
 * 4). A rank writes before a call that may block and after it; the supervisor reads once the worker is gone
 * or when it tells a limit. What is read is a stranger's: every word is checked against its range, and
 * nothing hangs on it but a sentence.
 */
#ifndef TEAM_LINKS_WAIT_BOARD_H
#define TEAM_LINKS_WAIT_BOARD_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/* name, text of "rank 3 waited 4.1 s in .." */
/* clang-format off */
#define TEAM_OPS(X) \
	X(IDLE, "nothing") X(OPEN, "opening its device") X(LINK, "connecting to rank 0's worker") \
	X(PREPARE, "preparing") X(AGREE, "agreeing with the other ranks") X(INIT, "making the communicator") \
	X(REGISTER, "registering buffers") X(ENQUEUE, "enqueueing") X(WAIT, "waiting for the device") \
	X(COMMAND, "waiting for rank 0's word") X(ANSWER, "waiting for the other ranks' answers") \
	X(VERIFY, "checking the result") X(MPI, "an MPI call") X(RELEASE, "releasing")
/* clang-format on */
#define X(name, text) TEAM_OP_##name,
enum team_op { TEAM_OPS(X) TEAM_OP_COUNT };
#undef X

/* Calls of NVML that a worker makes itself: name, the vendor's function. */
/* clang-format off */
#define TEAM_CALLS(X) \
	X(NONE, "") X(INIT, "nvmlInit_v2") X(HANDLE, "nvmlDeviceGetHandleByPciBusId_v2") \
	X(POWER_LIMIT, "nvmlDeviceGetEnforcedPowerLimit") X(CLOCK, "nvmlDeviceGetClockInfo") \
	X(FIELDS, "nvmlDeviceGetFieldValues") X(POWER, "nvmlDeviceGetPowerUsage") \
	X(REASONS, "nvmlDeviceGetCurrentClocksEventReasons") X(PCIE_GEN, "nvmlDeviceGetCurrPcieLinkGeneration") \
	X(PCIE_WIDTH, "nvmlDeviceGetCurrPcieLinkWidth")
/* clang-format on */
#define X(name, text) TEAM_CALL_##name,
enum team_call { TEAM_CALLS(X) TEAM_CALL_COUNT };
#undef X

struct team_board { /* one rank, a cache line; TEAM_BOARD_RANKS of them in the memfd */
	_Atomic uint32_t used, rank, sequence, op;
	_Atomic uint64_t since_ns; /* CLOCK_MONOTONIC */
	/* The last op that took TEAM_LONG_NS and is over: what others' ends cut short is still to be told. */
	_Atomic uint64_t long_ns, long_end_ns;
	_Atomic uint32_t long_op, call; /* call: of NVML, while it has not returned */
	uint32_t pad[4];
};
enum { TEAM_BOARD_RANKS = 64, TEAM_LONG_NS = 500000000 };
_Static_assert(sizeof(struct team_board) == 64, "a cache line");

/* Memory of TEAM_BOARD_RANKS lines that a child can be given: *fd is its descriptor here. NULL: there is
 * none, and nothing is lost but sentences. Owner: caller, team_board_destroy. */
struct team_board *team_board_create(int *fd);
/* The child's side; NULL: that descriptor is no board. Lives as long as the process. */
struct team_board *team_board_open(int fd);
void team_board_destroy(struct team_board **b, int *fd);

/* This line is of `rank` from now on. */
void team_board_take(struct team_board *b, unsigned rank);
/* Where the rank stands from now on. NULL is fine. */
void team_at(struct team_board *b, enum team_op op);
/* This call of NVML begins; NONE: it has returned. NULL is fine. */
void team_call(struct team_board *b, enum team_call call);
/* The vendor's function that has not returned to one of the ranks; "": each has. Pure. */
const char *team_board_call(const struct team_board *board, unsigned lines);
/* "rank 3 waited 4.1 s in making the communicator, ranks 0 to 2 in waiting for the device": who waits
 * for its own device or call before who waits for other ranks, the longest first; of who has just left a
 * long wait, since another rank ended first, that one; "" where nothing sound stands there. Pure. */
void team_board_text(char *out, size_t size, const struct team_board *board, unsigned lines, uint64_t now_ns);
#endif
