/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of nccl_of. Private to nccl.c and the files next to it. */
#ifndef PROFILE_NCCL_INTERNAL_H
#define PROFILE_NCCL_INTERNAL_H
#include "profile/nccl/nccl.h"

/* Fills n->launch and n->kernel from NCCL's ranges and kernels. false: out of memory, as for nccl_pair. */
bool nccl_join(struct nccl *n, const struct timeline *t);
/* Number of ranks of a communicator; 0: unknown. */
uint32_t nccl_ranks(const struct timeline *t, uint64_t comm);
/* The rank of this process in the communicator; TIMELINE_NONE: unknown, or the process has several. */
uint32_t nccl_own_rank(const struct timeline *t, uint64_t comm, uint16_t process);
/* Matches the launches of all ranks, and sets their ready and fastest times. */
bool nccl_pair(struct nccl *n, const struct timeline *t);
#endif
