/* SPDX-License-Identifier: Apache-2.0 */
/* The operations by which the ranks of a team communicate. threads.c implements them for ranks in one
 * process, processes.c for ranks in several. */
#ifndef TEAM_LINKS_LINKS_H
#define TEAM_LINKS_LINKS_H
#include "team/team.h"

/* One rank's part in an agreement. */
struct team_verdict {
	uint32_t status, cause, rank;
	char text[500];
};

enum team_meeting { TEAM_MEET_AGREE, TEAM_MEET_SHARE, TEAM_MEET_GATHER };

struct team_links_ops {
	/* All ranks call it with `size` bytes each. `all` receives, by kind, AGREE: the worst verdict; SHARE:
	 * rank 0's bytes; GATHER: the bytes of all ranks, by rank. */
	enum status (*meet)(struct team *t, enum team_meeting kind, const void *mine, size_t size, void *all,
			    struct error *err);
	enum status (*post)(struct team *t, const struct team_command *c, struct error *err);
	enum status (*follow)(struct team *t, struct team_command *c, struct error *err);
	enum status (*answer)(struct team *t, const void *bytes, size_t size, struct error *err);
	enum status (*collect)(struct team *t, unsigned rank, void *bytes, size_t room, size_t *size,
			       struct error *err);
	void (*leave)(struct team *t, const struct error *why);
	bool (*left)(struct team *t, struct error *why);
	void (*begin)(struct team *t);
};

struct team_links { /* first member of both implementations */
	const struct team_links_ops *ops;
};

/* Sets NO_RESOURCE with TIMED_OUT: "rank 2, rank 5 did not reach an agreement step within 3.0 s". `here`: by
 * rank, whether it arrived; `what`: where. */
enum status team_late(const struct team *t, const bool *here, const char *what, struct error *err);
#endif
