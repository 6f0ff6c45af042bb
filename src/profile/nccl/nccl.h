/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL operations: NCCL's calls with communicator and size from its NVTX ranges, joined with the kernels that
 * they launched, and matched with the launches of the other ranks. docs/explanation/methods/profile.md, "NCCL
 * operations of a profile". */
#ifndef PROFILE_NCCL_NCCL_H
#define PROFILE_NCCL_NCCL_H
#include "core/math/bus_bandwidth.h"
#include "profile/timeline/timeline.h"

/* id, NCCL's function ("": none), name in tables and JSON, bytes on a rank's link, whether NCCL reports the
 * size of one rank's part */
/* clang-format off */
#define NCCL_OPERATIONS(X)                                               \
	X(ALL_REDUCE, "ncclAllReduce", "allreduce", BUS_OTHERS_TWICE, 0) \
	X(ALL_GATHER, "ncclAllGather", "allgather", BUS_OTHERS, 1)       \
	X(REDUCE_SCATTER, "ncclReduceScatter", "reducescatter", BUS_OTHERS, 1) \
	X(ALL_TO_ALL, "ncclAlltoAll", "alltoall", BUS_OTHERS, 1)         \
	X(BROADCAST, "ncclBroadcast", "broadcast", BUS_ALL, 0)           \
	X(REDUCE, "ncclReduce", "reduce", BUS_ALL, 0)                    \
	X(GATHER, "ncclGather", "gather", BUS_OTHERS, 1)                 \
	X(SCATTER, "ncclScatter", "scatter", BUS_OTHERS, 1)              \
	X(SEND, "ncclSend", "send", BUS_ALL, 0)                          \
	X(RECV, "ncclRecv", "recv", BUS_ALL, 0)                          \
	X(SEND_RECV, "", "sendrecv", BUS_ALL, 0)                         \
	X(MIXED, "", "mixed group", BUS_ALL, 0)                          \
	X(UNKNOWN, "", "not told", BUS_ALL, 0)
/* clang-format on */
#define X(id, ...) NCCL_##id,
enum nccl_operation { NCCL_OPERATIONS(X) NCCL_OPERATION_COUNT };
#undef X
const char *nccl_operation_name(enum nccl_operation op);
enum bus_load nccl_operation_load(enum nccl_operation op);
/* Whether a kernel of this name is NCCL's. The rule is that of Holistic Trace Analysis. */
bool nccl_is_kernel(const char *name);

/* What one call, or one group of calls, ran on one device. It can consist of several kernels. */
struct nccl_launch {
	uint64_t comm;		   /* hash of the communicator; 0: unknown, or several */
	uint64_t size;		   /* bytes of the larger side; 0: unknown */
	double link_bytes;	   /* bytes that a rank's link carries for it in one direction; 0: unknown */
	uint64_t start_ns, end_ns; /* start of its first kernel, end of its last one */
	uint64_t ready_ns; /* time at which the last rank began; start_ns if unknown, or if this rank was the
			      last */
	uint64_t fastest_ns; /* shortest time of any rank; its own if the others' are unknown */
	uint32_t kernels, calls, device;
	uint32_t ranks; /* ranks of the communicator; 0: unknown */
	uint16_t process;
	uint8_t operation;
	bool paired; /* matched with every other rank of the communicator that is in this profile; there is at
			least one */
	bool graph;  /* launched by a CUDA graph, so its arguments are unknown */
};

/* A table row: launches of the same operation, communicator and size. Times in ns. */
struct nccl_row {
	uint64_t comm, size;
	uint32_t ranks, calls; /* calls: number of calls in one launch */
	uint8_t operation;
	bool graph;
	uint64_t count; /* launches of all ranks in this profile */
	double total, mean, min, p50, p90, p99, max;
	double fastest_p50;		 /* median of fastest_ns */
	double algorithm_rate, bus_rate; /* B/s, at fastest_p50; 0: the size is unknown */
	double waiting;			 /* sum of ready_ns - start_ns */
	uint64_t paired;
};

struct nccl_kernel {
	uint32_t event, launch; /* indices */
};

struct nccl {
	struct nccl_launch *launch;
	struct nccl_kernel *kernel; /* sorted by event */
	struct nccl_row *row;	    /* by total time, longest first */
	size_t launches, kernels, rows;
	uint64_t calls;	 /* NCCL calls that move data */
	uint64_t lonely; /* calls of these whose kernels were not found */
};

/* NO_RESOURCE: out of memory. */
enum status nccl_of(struct nccl *n, const struct timeline *t, struct error *err);
void nccl_release(struct nccl *n);
/* The launch that an NCCL kernel belongs to; NULL: it belongs to none. */
const struct nccl_launch *nccl_launch_of(const struct nccl *n, uint32_t event);
/* By process: whether it has launches that were matched with another rank's. The caller frees the table.
 * NULL: out of memory. */
bool *nccl_paired(const struct nccl *n, const struct timeline *t);
#endif
