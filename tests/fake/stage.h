/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver, libcuda.so.1, that a CPU can run: device memory is host memory, kernels are their references
 * (tests/gpu/ref_*.c), time is counted a device and not waited for. FAKE_CUDA stages what goes wrong, as
 * words with commas:
 *
 *   SYMBOL=CODE[@N]   from its N-th call on (1: the first), this function returns CODE; codes of 700 and
 *                     more, and those of lost devices, stick: every later call returns them
 *   flip=ENTRY[@N]    the N-th and later launches of this kernel leave a wrong bit in their first word
 *   nan=ENTRY[@N]     the same, a NaN; zero=ENTRY[@N]: a zero
 *   drop=ENTRY[@N]    those launches do nothing
 *   stick=ENTRY[@N]   those launches never end, so nothing behind them does
 *   memory=MIB        of a device (81920); sms=N (132), cc=N (90), clock=MHZ (1980), devices=N (1)
 *   context=MIB       that each device has in use without an allocation (0)
 *   event=NS          that an event takes on the device (0)
 *   ahead=1           the host is ahead of its devices: the first look at an event finds it not ready
 *   late=1            streams made after a process's first do nothing before somebody waits for it, and read the host's memory then
 *   late_only=N       the same for the N-th stream that is made since this is set
 *   deaf=N            the N-th wait that has a stream made since this is set, for an event or as the one that waits, has no effect
 *   pace=N            devices have the host's clock, and take N times as long by it as by their own
 *   peer=A>B          neither reaches the other's memory
 *   slow=A>B:SHARE    copies from A to B at this share of their rate
 *   flip_peer=A>B     they leave a wrong bit in their middle
 *   drop_peer=A>B     they move nothing
 *
 * FAKE_CUDA_IN=WORD makes the words count in processes alone that have WORD on their command line ("__facts").
 *
 * FAKE_CUDA_WAIT_MS=N makes each wait of the host for a device take so long.
 *
 * A pair may be "A>*" or "*>B", and several stand with a plus between: slow=1>*:0.5+*>1:0.5. The words are
 * read anew at each call; when they change, all counts and what stuck are forgotten.
 */
#ifndef TESTS_FAKE_STAGE_H
#define TESTS_FAKE_STAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* stage.c */
/* The code that this call of `symbol` returns, 0: go on. Counts the call. */
int stage_code(const char *symbol);
/* Whether the fault of this kind ("flip") is due at this launch of `entry`. Counts the launch. */
bool stage_due(const char *kind, const char *entry);
/* Whether one of the word's pairs is of these devices; *number (unless NULL) is what follows its colon. */
bool stage_pair(const char *word, int from, int to, double *number);
uint64_t stage_number(const char *word, uint64_t fallback);
#endif
