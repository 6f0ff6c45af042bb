/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL, libnccl.so.2, for the fake driver: ranks are threads of one process, or processes where
 * FAKE_NCCL_MEET names a folder for them to meet in (nccl_meet.h); each call waits for the others and the
 * last one moves the data. Words that name a rank are to be every process's. How long it takes comes from a
 * model (nccl_model.c): latency + size / bandwidth, with the protocol and algorithm that are fastest by it,
 * as NCCL's own tuning does it. FAKE_NCCL stages what goes wrong, as words with commas:
 *
 *   SYMBOL=CODE[@N]   from its N-th call on (1: the first), this function returns CODE
 *   version=N         what ncclGetVersion says (22809)
 *   missing=R:E       what rank R gives from element E on does not enter the result
 *   spoil=R:E         element E of what rank R receives is another value
 *   hang=R[@N]        rank R never comes back from its N-th collective (1)
 *   stall=N           a communicator's N-th collective never ends, on the devices of all its ranks
 *   slow=D:F          the collective takes F times as long, for all, where a rank is on device D
 *   rate=GB           bus bandwidth of the simple protocol (364)
 *   nvls=1            in-switch reduction is there, and chosen where it is faster
 *   limit=S           a rank waits so long for the others (60), 1 where one hangs by plan
 *   fp8=0             the 8-bit floats are refused, as below sm_90
 *   base=MB           memory of a device that is in use while there is a communicator (0)
 *   each=MB           .. and for each communicator (0)
 */
#ifndef TESTS_FAKE_NCCL_FAKE_H
#define TESTS_FAKE_NCCL_FAKE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_kind {
	FAKE_ALL_REDUCE,
	FAKE_ALL_GATHER,
	FAKE_REDUCE_SCATTER,
	FAKE_ALL_TO_ALL,
	FAKE_BROADCAST,
	FAKE_REDUCE,
	FAKE_POINT /* sends and receives of a group */
};

/* What tuning looks at, and what it finds. */
struct fake_ask {
	enum fake_kind kind;
	unsigned ranks, channels_max; /* 0: 24 */
	double bytes;		      /* of the larger side */
	bool windows, captured;
	const char *algorithm, *protocol; /* asked for by the environment; NULL: free */
};
struct fake_choice {
	const char *algorithm, *protocol; /* NULL: a symmetric kernel, of which no event tells */
	unsigned channels, warps;
	double ns;
};
/* False: no way of that name. */
bool fake_nccl_choose(const struct fake_ask *a, struct fake_choice *out);

/* nccl_stage.c: words of FAKE_NCCL, read anew at each call. */
int fake_nccl_code(const char *symbol);
bool fake_nccl_staged(const char *word);
double fake_nccl_number(const char *word, double fallback);
/* word=RANK[:VALUE][@N] is this rank's; N and VALUE where they stand. */
bool fake_nccl_rank(const char *word, unsigned rank, uint64_t *value, uint64_t *from);
#endif
