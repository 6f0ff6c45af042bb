/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL did: its calls, told by its NVTX ranges with communicator and size, joined with the kernels that
 * they launched, and held against the other ranks'. docs/explanation/methods, "NCCL operations of a profile".
 */
#ifndef PROFILE_NCCL_NCCL_H
#define PROFILE_NCCL_NCCL_H
#include "core/math/bus_bandwidth.h"
#include "profile/timeline/timeline.h"

/* id, NCCL's function ("": there is none of that name), our word, its bytes on a link, told size is a part of
 * as many as there are ranks */
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
/* Whether a kernel of this name is NCCL's: as Holistic Trace Analysis tells communication. */
bool nccl_is_kernel(const char *name);

/* One call, or what one group of calls did on one device: kernels without a gap in what they do together. */
struct nccl_launch {
	uint64_t comm;		   /* the communicator's hash; 0: not told, or several */
	uint64_t size;		   /* bytes, the whole of the larger side; 0: not told */
	double link_bytes;	   /* that a rank's link carries for it, one way; 0: not told */
	uint64_t start_ns, end_ns; /* first kernel's start, last one's end */
	uint64_t ready_ns; /* when the last rank's began; start_ns where that is not known, or it was this */
	uint64_t fastest_ns; /* the shortest that a rank's took; its own where the others' are not known */
	uint32_t kernels, calls, device;
	uint32_t ranks; /* of the communicator; 0: not told */
	uint16_t process;
	uint8_t operation;
	bool paired; /* with every other rank of the communicator that is in this profile, more than one */
	bool graph;  /* launched by a graph: what it was called with is not told */
};

/* What is alike, together. Times in ns. */
struct nccl_row {
	uint64_t comm, size;
	uint32_t ranks, calls; /* calls: in one launch */
	uint8_t operation;
	bool graph;
	uint64_t count; /* launches, of all ranks of this profile */
	double total, mean, min, p50, p90, p99, max;
	double fastest_p50;		 /* median of fastest_ns */
	double algorithm_rate, bus_rate; /* B/s, at fastest_p50; 0: the size is not told */
	double waiting;			 /* total of ready_ns - start_ns */
	uint64_t paired;
};

struct nccl_kernel {
	uint32_t event, launch; /* indices */
};

struct nccl {
	struct nccl_launch *launch;
	struct nccl_kernel *kernel; /* by event */
	struct nccl_row *row;	    /* by total time, longest first */
	size_t launches, kernels, rows;
	uint64_t calls;	 /* NCCL's, that move data */
	uint64_t lonely; /* of them, those whose kernels were not found */
};

/* NO_RESOURCE: memory. */
enum status nccl_of(struct nccl *n, const struct timeline *t, struct error *err);
void nccl_release(struct nccl *n);
/* The launch that a kernel of NCCL's belongs to; NULL: it is none of them. */
const struct nccl_launch *nccl_launch_of(const struct nccl *n, uint32_t event);
/* By process: whether it has launches that were held against another rank's. Caller frees; NULL: no memory.
 */
bool *nccl_paired(const struct nccl *n, const struct timeline *t);
#endif
