/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's own report of a collective: algorithm, protocol, channels. The program itself is NCCL's profiler
 * plug-in (NCCL_PROFILER_PLUGIN=STATIC_PLUGIN). It enables events only between nccl_hooks_listen(true) and
 * (false): docs/explanation/design/collective.md.
 */
#ifndef TEAM_LIBRARIES_NCCL_HOOKS_H
#define TEAM_LIBRARIES_NCCL_HOOKS_H
#include <stdbool.h>

struct nccl_choice {
	bool told;			  /* false: no event since listening began */
	char algorithm[24], protocol[16]; /* in lower case: "ring" "ll128" */
	unsigned channels, warps;
};

/* Names this program as NCCL's profiler plug-in. Call it before the process makes its first communicator.
 * False: the user has named another plug-in, which stays, and no events will arrive. */
bool nccl_hooks_offer(void);
/* Switches events of this process's ranks on or off, and forgets earlier events. */
void nccl_hooks_listen(bool on);
/* The last collective call since listening began. */
struct nccl_choice nccl_hooks_choice(void);
#endif
