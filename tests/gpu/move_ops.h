/* SPDX-License-Identifier: Apache-2.0 */
/* Names and traffic of the memory operations. */
#ifndef TESTS_GPU_MOVE_OPS_H
#define TESTS_GPU_MOVE_OPS_H
#include "gpu/memory/move.h"

static inline const char *move_op_name(enum move_op op)
{
	static const char *const names[] = {
#define X(name, text, ...) text,
		MOVE_OPS(X)
#undef X
	};

	return names[op];
}

/* Bytes that one launch must move: each input is read once, each output written once. */
static inline uint64_t move_bytes(enum move_op op, uint64_t count)
{
	static const unsigned arrays[] = {
#define X(name, text, reads, writes) reads + writes,
		MOVE_OPS(X)
#undef X
	};

	return arrays[op] * count * sizeof(float);
}
#endif
