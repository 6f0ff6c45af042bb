/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's profiler plug-in interface, versions 4 and 5, reduced to the parts that report a collective's
 * algorithm and protocol. Each version is a table of functions. NCCL finds it by name in a library or, with
 * NCCL_PROFILER_PLUGIN=STATIC_PLUGIN, in the program itself. init sets `mask`, one word for the whole
 * process, and NCCL generates only the events in it.
 */
#ifndef VENDOR_NCCL_PROFILER_H
#define VENDOR_NCCL_PROFILER_H
#include <stddef.h>
#include <stdint.h>
#include "vendor/nccl.h"

enum { NCCL_PROFILE_COLL = 1 << 1 };

/* The descriptors of both versions begin with the same members; only the width of `type` differs. A union
 * follows, of which this struct is the member for collectives. */
struct nccl_profile_coll {
	uint64_t sequence;
	const char *function;
	const void *send;
	void *receive;
	size_t count;
	int root;
	const char *type;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};
struct nccl_profile_v4 {
	uint8_t type;
	void *parent;
	int rank;
	struct nccl_profile_coll coll;
};
struct nccl_profile_v5 {
	uint64_t type;
	void *parent;
	int rank;
	struct nccl_profile_coll coll;
};

struct nccl_profiler_v4 {
	const char *name;
	ncclResult_t (*init)(void **context, int *mask, const char *comm_name, uint64_t comm_hash, int nodes,
			     int ranks, int rank, void *log);
	ncclResult_t (*start)(void *context, void **event, struct nccl_profile_v4 *d);
	ncclResult_t (*stop)(void *event);
	ncclResult_t (*state)(void *event, int state, void *args);
	ncclResult_t (*finalize)(void *context);
};
struct nccl_profiler_v5 {
	const char *name;
	ncclResult_t (*init)(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
			     int ranks, int rank, void *log);
	ncclResult_t (*start)(void *context, void **event, struct nccl_profile_v5 *d);
	ncclResult_t (*stop)(void *event);
	ncclResult_t (*state)(void *event, int state, void *args);
	ncclResult_t (*finalize)(void *context);
};
#endif
