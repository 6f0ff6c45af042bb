/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of the fake NCCL hand in, and the moving and reducing of it. */
#ifndef TESTS_FAKE_NCCL_MOVE_H
#define TESTS_FAKE_NCCL_MOVE_H
#include "nccl_fake.h"
#include "vendor/nccl.h"

enum { FAKE_RANKS = 16 };

struct fake_point {
	const void *send;
	void *receive;
	size_t count;
};

struct fake_call { /* of one rank */
	struct fake_call *next;
	enum fake_kind kind;
	unsigned rank;
	const void *send;
	void *receive;
	size_t count; /* as NCCL's own functions count */
	ncclDataType_t type;
	ncclRedOp_t op;
	int root;
	double ns;
	struct fake_point to[FAKE_RANKS], from[FAKE_RANKS]; /* FAKE_POINT */
};

size_t fake_type_bytes(ncclDataType_t t);
/* Of the larger side. */
double fake_call_bytes(const struct fake_call *c, unsigned ranks);
void fake_nccl_move(const struct fake_call *const *call, unsigned ranks);
#endif
