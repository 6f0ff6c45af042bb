/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where ranks of the fake NCCL meet: threads of one process, or processes where FAKE_NCCL_MEET names a folder
 * to all. A group's meeting is then a file there, mapped by every rank and named by the unique id; it is
 * removed when all have come. Its ranks' data goes through rooms in it (nccl_room.c). Every wait has a limit,
 * and ends where a rank's process is gone.
 */
#ifndef TESTS_FAKE_NCCL_MEET_H
#define TESTS_FAKE_NCCL_MEET_H
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include "nccl_move.h"

enum { FAKE_ROOM = 8 << 20, /* bytes a rank can send, and receive, between processes */ FAKE_HOST = 64 };

struct fake_slot { /* a rank's, written by it alone */
	pid_t pid; /* 0: it has not come, or has gone again */
	int device;
	char host[FAKE_HOST];
	int color, key;	       /* of a split */
	struct fake_call call; /* of this turn; between processes addresses are offsets into its rooms */
	double now_ns;	       /* its device's time when it came */
	bool repeats;	       /* the call before again, and what that left is still there */
};

struct fake_meeting {
	pthread_mutex_t lock;
	_Atomic uint32_t changes; /* waiting ranks sleep until this moves */
	unsigned ranks, joined, arrived;
	_Atomic uint64_t turn;
	_Atomic bool aborted;
	bool moved;    /* data, in the last turn */
	double end_ns; /* when the last turn's work is done on all devices */
	struct fake_slot slot[FAKE_RANKS];
};

struct fake_group { /* this process's view */
	struct fake_group *next;
	ncclUniqueId id;
	struct fake_meeting *meeting;
	unsigned char *rooms; /* NULL: one process, which needs none */
};

/* The group of this id, made by whoever comes first; never freed, as ranks may come late. NULL: it cannot be
 * made. */
struct fake_group *fake_group_of(const ncclUniqueId *id, unsigned ranks);
/* Of this group alone, the same on all ranks that are in the same turn. */
ncclUniqueId fake_group_split_id(const struct fake_group *g, int color);

void fake_meeting_lock(struct fake_meeting *m);
void fake_meeting_unlock(struct fake_meeting *m);
/* Lock held. Something has changed for who waits. */
void fake_meeting_tell(struct fake_meeting *m);
/* Lock held. This rank has come. False: another one of its device is there. */
bool fake_meeting_join(struct fake_group *g, unsigned rank, int device);
/* Lock held. Until all have come; false: aborted, or somebody will not. */
bool fake_meeting_await_all(struct fake_meeting *m);
/* Lock not held. Until all have come to this turn; the last one does `work` for all. False: as above. The turn's results
 * stay in the meeting until this rank comes to the next turn. */
bool fake_meeting_turn(struct fake_group *g, void (*work)(struct fake_group *g));
#endif
