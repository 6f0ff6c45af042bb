/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the fake NCCL share: its communicators, and the way to the fake driver. */
#ifndef TESTS_FAKE_NCCL_COMM_H
#define TESTS_FAKE_NCCL_COMM_H
#include "cuda_fake.h"
#include "nccl_fake.h"
#include "nccl_meet.h"
#include "nccl_move.h"
#include "vendor/nccl.h"
#include "vendor/nccl_profiler.h"

#define X(need, ret, field, symbol, params) ret symbol params;
NCCL_FUNCTIONS(X)
#undef X

#define REFUSED(symbol)                                                                                      \
	do {                                                                                                 \
		int staged_code = fake_nccl_code(#symbol);                                                   \
		if (staged_code)                                                                             \
			return (ncclResult_t)staged_code;                                                    \
	} while (0)

enum { FAKE_WINDOWS = 16 };

/* What a call moved, by the ends of both arrays: a repetition finds its result there already, and need not be
 * done again. In place everything is. */
struct fake_trace {
	const void *send;
	void *receive;
	size_t count;
	int kind, type, op;
	uint64_t ends[4];
};

struct ncclComm {
	struct fake_group *group;
	unsigned rank;
	int device;
	int64_t held; /* bytes of the device's memory */
	ncclConfig_t config;
	char algorithm[16], protocol[16]; /* as the environment had it when this was made */
	struct fake_call *calls;	  /* all ever made: graphs keep them */
	struct fake_trace trace;	  /* of the last one that moved data */
	uint64_t count, stalls;
	struct {
		const void *at;
		size_t size;
	} window[FAKE_WINDOWS];
	const struct nccl_profiler_v5 *profiler;
	void *context;
};

/* nccl.c */
void *fake_driver(const char *symbol);
#define DRIVER(name) ((__typeof__(&name))(uintptr_t)fake_driver(#name))
extern int fake_profiler_mask;

/* nccl_window.c */
bool fake_in_window(const struct ncclComm *c, const void *p);
#endif
