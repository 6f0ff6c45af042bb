/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's operations while they are put together; nccl_of's own. */
#ifndef PROFILE_NCCL_INTERNAL_H
#define PROFILE_NCCL_INTERNAL_H
#include "profile/nccl/nccl.h"

/* Launches from the ranges and kernels. False: no memory; so the others. */
bool nccl_join(struct nccl *n, const struct timeline *t);
/* Ranks of a communicator; 0: not told. */
uint32_t nccl_ranks(const struct timeline *t, uint64_t comm);
/* This process's rank in it; TIMELINE_NONE: not told, or it has several. */
uint32_t nccl_own_rank(const struct timeline *t, uint64_t comm, uint16_t process);
/* Ready and fastest times of what ranks did together. */
bool nccl_pair(struct nccl *n, const struct timeline *t);
bool nccl_tabulate(struct nccl *n);
#endif
