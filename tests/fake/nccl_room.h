/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank of the fake NCCL brings to a turn and takes from it. */
#ifndef TESTS_FAKE_NCCL_ROOM_H
#define TESTS_FAKE_NCCL_ROOM_H
#include "nccl_meet.h"

/* Whether a rank's rooms hold what this call moves. */
bool fake_room_holds(const struct fake_group *g, const struct fake_call *call);
/* This rank's call and data for the next turn. */
void fake_room_bring(struct fake_group *g, unsigned rank, const struct fake_call *call);
/* The call of this turn as this process can move it. */
struct fake_call fake_room_call(const struct fake_group *g, unsigned rank);
/* What the turn's work left for this rank. */
void fake_room_take(struct fake_group *g, unsigned rank, const struct fake_call *call);
#endif
