/* SPDX-License-Identifier: Apache-2.0 */
/* What processes.c (who asks), processes_receive.c (what comes) and processes_join.c (how they come together)
 * share. */
#ifndef TEAM_LINKS_PROCESSES_INTERNAL_H
#define TEAM_LINKS_PROCESSES_INTERNAL_H
#include "team/transport/channel.h"
#include "team/links/links.h"
#include "team/transport/rendezvous.h"
#include "team/links/processes.h"

struct parcel { /* bytes that wait for who asks for them */
	struct parcel *next;
	size_t size, whole; /* so many have come; of so many */
	char bytes[];
};

struct mate { /* rank 0: one of the others; the others: rank 0 */
	struct channel ch;
	bool here;
	bool meets; /* its word for the meeting has come */
	enum team_meeting kind;
	size_t size;
	unsigned char *word;
	struct parcel *first, *last; /* answers; commands */
};

struct process_links {
	struct team_links links;
	unsigned rank, size;
	char secret[PROCESS_LINKS_SECRET];
	struct listener door;
	struct mate *mate; /* rank 0: by rank, its own unused; else one */
	unsigned mates;
	struct error left; /* the first that left this step */
	bool fresh;	   /* the next command begins a step */
	uint64_t looked_ns;
};

/* A frame of an answer: where it belongs. */
struct answer_head {
	uint64_t whole, at;
};
struct meet_head {
	uint32_t kind, size;
};
/* A command: does it begin a step? */
struct command_frame {
	struct team_command command;
	uint32_t fresh, reserved;
};

/* The first that leaves this step counts; rank 0 hands it on, but to `from`. `told`: it came over the wires.
 */
void process_links_take_left(struct process_links *w, const struct error *why, unsigned from, bool told);
/* A connection that broke is a rank that left, for good. */
void process_links_lose(struct process_links *w, unsigned i, const char *why);
/* One look: waits up to wait_ms for the first that has something. */
void process_links_look(struct process_links *w, unsigned wait_ms);
/* What has come from it already. False: it is lost. */
bool process_links_take(struct process_links *w, unsigned i);
extern const struct team_links_ops process_links_ops;
#endif
