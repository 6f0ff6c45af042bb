/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that NCCL reads: names from its user guide and from the strings of libnccl 2.28.9. */
#ifndef MACHINE_NCCL_VARIABLES_H
#define MACHINE_NCCL_VARIABLES_H
#include <stddef.h>

/* name, word, who reads a variable of that name */
/* clang-format off */
#define NCCL_READERS(X)                                                    \
	X(NCCL, "nccl", "NCCL")                                            \
	X(OLD, "old", "releases of NCCL before 2.28 alone, or under another name") \
	X(TORCH, "torch", "PyTorch, not NCCL")                             \
	X(PLUGIN, "plug-in", "a plug-in, not NCCL itself")                 \
	X(IMAGE, "image", "nobody: a container image says its version so")
/* clang-format on */
#define X(name, word, text) NCCL_READER_##name,
enum nccl_reader { NCCL_READERS(X) NCCL_READER_COUNT };
#undef X

struct nccl_variable {
	const char *name;
	enum nccl_reader reader;
	const char *help; /* "": NVIDIA's guide has none */
};

/* NULL past the last; sorted by name. */
const struct nccl_variable *nccl_variable_at(size_t index);
/* By its whole name, or the plug-in whose family it is of; NULL: nobody is known to read it. */
const struct nccl_variable *nccl_variable_find(const char *name);
/* The known name nearest to it; NULL: none is near. */
const char *nccl_variable_nearest(const char *name);
const char *nccl_reader_word(enum nccl_reader reader);
const char *nccl_reader_text(enum nccl_reader reader);
#endif
