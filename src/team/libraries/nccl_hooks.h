/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL says of a collective: algorithm, protocol, channels. The program itself is the profiler plug-in
 * (NCCL_PROFILER_PLUGIN=STATIC_PLUGIN), and asks for events only while someone listens: METHODS,
 * "Collectives".
 */
#ifndef TEAM_LIBRARIES_NCCL_HOOKS_H
#define TEAM_LIBRARIES_NCCL_HOOKS_H
#include <stdbool.h>

struct nccl_told {
	bool told;			  /* false: no event came of the calls since */
	char algorithm[24], protocol[16]; /* in small letters: "ring" "ll128" */
	unsigned channels, warps;
};

/* Before the first communicator of the process is made: names the program as plug-in, unless the user has
 * named one, which is kept. False: the user's is in force, and nothing will be told. */
bool nccl_hooks_offer(void);
/* From now on the calls of this process's ranks are told, or no more. What was told before is forgotten. */
void nccl_hooks_listen(bool on);
/* Of the last collective call since listening began. */
struct nccl_told nccl_hooks_told(void);
#endif
