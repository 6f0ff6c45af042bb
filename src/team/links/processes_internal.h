/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by processes.c (the operations), processes_receive.c (received frames) and processes_join.c
 * (connecting). */
#ifndef TEAM_LINKS_PROCESSES_INTERNAL_H
#define TEAM_LINKS_PROCESSES_INTERNAL_H
#include "team/transport/channel.h"
#include "team/links/links.h"
#include "team/transport/rendezvous.h"
#include "team/links/processes.h"

struct packet { /* received bytes that no call has taken yet */
	struct packet *next;
	size_t size, whole; /* bytes received; bytes in all */
	char bytes[];
};

struct link_peer { /* a peer: on rank 0 one of the others, on the others rank 0 */
	struct channel ch;
	bool here;
	bool meets; /* its part of the current meeting has arrived */
	enum team_meeting kind;
	size_t size;
	unsigned char *part;
	struct packet *first, *last; /* on rank 0 answers, on the others commands */
};

struct process_links {
	struct team_links links;
	unsigned rank, size;
	char secret[PROCESS_LINKS_SECRET];
	struct listener listener;
	struct link_peer *peer; /* on rank 0: by rank, its own unused; on others: one */
	unsigned peers;
	struct error left; /* the error of the first rank that left this step */
	bool fresh;	   /* the next command begins a step */
	uint64_t looked_ns;
};

/* Head of a frame that carries a part of an answer: the answer's size and the part's offset. */
struct answer_head {
	uint64_t whole, at;
};
struct meet_head {
	uint32_t kind, size;
};
/* A command; `fresh`: it begins a step. */
struct command_frame {
	struct team_command command;
	uint32_t fresh, reserved;
};

/* Records that a rank left this step; only the first one counts. Rank 0 forwards it to all but `from`.
 * `told`: it came in a frame. */
void process_links_take_left(struct process_links *w, const struct error *why, unsigned from, bool told);
/* Closes a broken connection: that rank has left for good. */
void process_links_lose(struct process_links *w, unsigned i, const char *why);
/* Waits up to wait_ms for data from any peer and handles it. */
void process_links_look(struct process_links *w, unsigned wait_ms);
/* Handles the frames received from one peer. False: it is lost. */
bool process_links_take(struct process_links *w, unsigned i);
extern const struct team_links_ops process_links_ops;
#endif
