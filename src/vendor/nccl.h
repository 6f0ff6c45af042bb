/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL 2.18 and newer, libnccl.so.2. tests/unit/vendor_headers.c checks rows and constants against <nccl.h>
 * (2.28.9). */
#ifndef VENDOR_NCCL_H
#define VENDOR_NCCL_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"
#include "vendor/lib.h"

/* clang-format off */
#define NCCL_RESULTS(X) \
	X(ncclSuccess, 0, OK, NONE)                       X(ncclUnhandledCudaError, 1, VENDOR, VENDOR_CALL) \
	X(ncclSystemError, 2, VENDOR, VENDOR_CALL)        X(ncclInternalError, 3, VENDOR, VENDOR_CALL) \
	X(ncclInvalidArgument, 4, VENDOR, VENDOR_CALL)    X(ncclInvalidUsage, 5, VENDOR, VENDOR_CALL) \
	X(ncclRemoteError, 6, VENDOR, VENDOR_CALL)        X(ncclInProgress, 7, VENDOR, VENDOR_CALL)
#define NCCL_TYPES(X) \
	X(ncclInt8, 0) X(ncclInt32, 2) X(ncclFloat16, 6) X(ncclFloat32, 7) X(ncclFloat64, 8) X(ncclBfloat16, 9) X(ncclFloat8e4m3, 10) X(ncclFloat8e5m2, 11)
#define NCCL_OPS(X) X(ncclSum, 0) X(ncclProd, 1) X(ncclMax, 2) X(ncclMin, 3) X(ncclAvg, 4)
/* clang-format on */
#ifndef NCCL_MAJOR /* <nccl.h> is not included */
typedef enum {
#define X(name, value, status, cause) name = value,
	NCCL_RESULTS(X)
#undef X
} ncclResult_t;
typedef enum {
#define X(name, value) name = value,
	NCCL_TYPES(X)
#undef X
} ncclDataType_t;
typedef enum {
#define X(name, value) name = value,
	NCCL_OPS(X)
#undef X
		ncclMaxRedOp = INT_MAX
} ncclRedOp_t;
typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct CUstream_st *cudaStream_t; /* a CUstream */
typedef struct {
	char internal[128];
} ncclUniqueId;
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_WIN_COLL_SYMMETRIC 0x01
typedef struct ncclConfig_v22800 { /* `version` gives the valid members; an older library reads only its
				    * own */
	size_t size;
	unsigned int magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs;
	const char *netName;
	int splitShare, trafficClass;
	const char *commName;
	int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
} ncclConfig_t;
#endif
#define VENDOR_NCCL_MAGIC 0xcafebeef

/* clang-format off */
#define NCCL_FUNCTIONS(X) \
	X(REQUIRED, ncclResult_t, version, ncclGetVersion, (int *version)) \
	X(REQUIRED, const char *, error_string, ncclGetErrorString, (ncclResult_t r)) \
	X(OPTIONAL, const char *, last_error, ncclGetLastError, (ncclComm_t c)) \
	X(REQUIRED, ncclResult_t, unique_id, ncclGetUniqueId, (ncclUniqueId *id)) \
	X(REQUIRED, ncclResult_t, init, ncclCommInitRankConfig, (ncclComm_t *c, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)) \
	X(REQUIRED, ncclResult_t, async_error, ncclCommGetAsyncError, (ncclComm_t c, ncclResult_t *r)) \
	X(REQUIRED, ncclResult_t, finalize, ncclCommFinalize, (ncclComm_t c)) \
	X(REQUIRED, ncclResult_t, destroy, ncclCommDestroy, (ncclComm_t c)) \
	X(REQUIRED, ncclResult_t, abort, ncclCommAbort, (ncclComm_t c)) \
	X(OPTIONAL, ncclResult_t, split, ncclCommSplit, (ncclComm_t c, int color, int key, ncclComm_t *out, ncclConfig_t *config)) \
	X(OPTIONAL, ncclResult_t, alloc, ncclMemAlloc, (void **p, size_t size)) \
	X(OPTIONAL, ncclResult_t, free, ncclMemFree, (void *p)) \
	X(OPTIONAL, ncclResult_t, reg, ncclCommRegister, (const ncclComm_t c, void *p, size_t size, void **handle)) \
	X(OPTIONAL, ncclResult_t, dereg, ncclCommDeregister, (const ncclComm_t c, void *handle)) \
	X(OPTIONAL, ncclResult_t, window, ncclCommWindowRegister, (ncclComm_t c, void *p, size_t size, ncclWindow_t *w, int flags)) \
	X(OPTIONAL, ncclResult_t, unwindow, ncclCommWindowDeregister, (ncclComm_t c, ncclWindow_t w)) \
	X(REQUIRED, ncclResult_t, group_start, ncclGroupStart, (void)) \
	X(REQUIRED, ncclResult_t, group_end, ncclGroupEnd, (void)) \
	X(REQUIRED, ncclResult_t, all_reduce, ncclAllReduce, (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t st)) \
	X(REQUIRED, ncclResult_t, reduce, ncclReduce, (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t st)) \
	X(REQUIRED, ncclResult_t, broadcast, ncclBroadcast, (const void *s, void *r, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t st)) \
	X(REQUIRED, ncclResult_t, reduce_scatter, ncclReduceScatter, (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t st)) \
	X(REQUIRED, ncclResult_t, all_gather, ncclAllGather, (const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t st)) \
	X(OPTIONAL, ncclResult_t, all_to_all, ncclAlltoAll, (const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t st)) \
	X(REQUIRED, ncclResult_t, send, ncclSend, (const void *s, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t st)) \
	X(REQUIRED, ncclResult_t, recv, ncclRecv, (void *r, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t st))
/* clang-format on */

struct nccl {
#define X(need, ret, field, symbol, params) ret(*field) params;
	NCCL_FUNCTIONS(X)
#undef X
};

extern const struct lib_spec nccl_lib;

/* Opens the library and reads its version. UNAVAILABLE with LIBRARY_MISSING: it is absent, lacks a function,
 * or is older than 2.18. The caller releases `fact`, which may be NULL. */
enum status nccl_open(struct nccl *out, struct lib_fact *fact, struct error *err);

/* Converts a result. Success and InProgress are OK. Otherwise *err has the library's message, and `what`
 * names the call: "ncclCommInitRankConfig of rank 2". c may be NULL. */
enum status nccl_check(const struct nccl *n, ncclResult_t r, ncclComm_t c, const char *what,
		       struct error *err);

/* A configuration with every member undefined, so NCCL's defaults apply. `version` is the one that the loaded
 * library knows, so it reads no newer member. */
ncclConfig_t nccl_config(const struct nccl *n);

/* For example "2.28.9". */
void nccl_version_text(const struct nccl *n, char *out, size_t size);
#endif
