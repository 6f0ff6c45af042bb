/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait board: shared memory in which the ranks of a worker record what they wait in (a sealed memfd, the
 * child's descriptor 4). A rank writes before and after a call that may block. The supervisor reads the board
 * once the worker is gone, or when it reports an expired limit. It does not trust the contents: each value is
 * checked against its range, and is used only in messages.
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
	X(COMMAND, "waiting for a command from rank 0") X(ANSWER, "waiting for the other ranks' answers") \
	X(VERIFY, "checking the result") X(MPI, "an MPI call") X(RELEASE, "releasing")
/* clang-format on */
#define X(name, text) TEAM_OP_##name,
enum team_op { TEAM_OPS(X) TEAM_OP_COUNT };
#undef X

/* NVML calls that a worker makes: name, NVML's function. */
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

/* The entry of one rank, one cache line. The memfd holds TEAM_BOARD_RANKS of them, and then the flight record
 * (team/links/flight.h). */
struct team_board {
	_Atomic uint32_t used, rank, sequence, op;
	_Atomic uint64_t since_ns; /* CLOCK_MONOTONIC */
	/* The last finished op that took at least TEAM_LONG_NS. It is still reported if another rank's end
	 * cut it short. */
	_Atomic uint64_t long_ns, long_end_ns;
	_Atomic uint32_t long_op, call; /* call: the NVML call that has not returned yet */
	uint32_t pad[4];
};
enum { TEAM_BOARD_RANKS = 64, TEAM_LONG_NS = 500000000 };
_Static_assert(sizeof(struct team_board) == 64, "a cache line");

/* Makes a board of TEAM_BOARD_RANKS entries that a child can inherit by *fd. NULL: it failed, and messages
 * will not name waits. Owner: caller, team_board_destroy. */
struct team_board *team_board_create(int *fd);
/* Opens the board in the child; NULL: the descriptor is not a board. It lives as long as the process. */
struct team_board *team_board_open(int fd);
void team_board_destroy(struct team_board **b, int *fd);

/* Assigns this entry to `rank`. */
void team_board_take(struct team_board *b, unsigned rank);
/* Records what the rank waits in from now on. Does nothing for NULL. */
void team_at(struct team_board *b, enum team_op op);
/* Records that this NVML call begins; NONE: it has returned. Does nothing for NULL. */
void team_call(struct team_board *b, enum team_call call);
/* The NVML function that has not returned on one of the ranks; "": all have returned. */
const char *team_board_call(const struct team_board *board, unsigned lines);
/* Describes the waits: "rank 3 waited 4.1 s in making the communicator, ranks 0 to 2 waited 4.0 s in waiting
 * for the device". Ranks that wait for their own device or call come before ranks that wait for others. For a
 * rank that left a long wait just now, because another rank ended first, that wait is reported. "": no valid
 * entries. */
void team_board_text(char *out, size_t size, const struct team_board *board, unsigned lines, uint64_t now_ns);
#endif
