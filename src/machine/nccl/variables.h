/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that NCCL reads. Names are from NVIDIA's user guide and from the strings of libnccl 2.28.9.
 */
#ifndef MACHINE_NCCL_VARIABLES_H
#define MACHINE_NCCL_VARIABLES_H
#include <stddef.h>

/* id, word, which software reads a variable of this kind */
/* clang-format off */
#define NCCL_READERS(X)                                                    \
	X(NCCL, "nccl", "NCCL")                                            \
	X(OLD, "old", "only NCCL before 2.28, or now under another name") \
	X(TORCH, "torch", "PyTorch, not NCCL")                             \
	X(PLUGIN, "plug-in", "a plug-in, not NCCL itself")                 \
	X(IMAGE, "image", "no software: container images show their NCCL version with it")
/* clang-format on */
#define X(name, word, text) NCCL_READER_##name,
enum nccl_reader { NCCL_READERS(X) NCCL_READER_COUNT };
#undef X

struct nccl_variable {
	const char *name;
	enum nccl_reader reader;
	const char *help; /* "": not in NVIDIA's guide */
};

/* The variables sorted by name; NULL past the last. */
const struct nccl_variable *nccl_variable_at(size_t index);
/* Finds a variable by its full name, or the plug-in that reads all names with this prefix. NULL: unknown. */
const struct nccl_variable *nccl_variable_find(const char *name);
/* The known name with the smallest edit distance; NULL: none is similar. */
const char *nccl_variable_nearest(const char *name);
const char *nccl_reader_word(enum nccl_reader reader);
const char *nccl_reader_text(enum nccl_reader reader);
#endif
