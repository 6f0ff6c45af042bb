/* SPDX-License-Identifier: Apache-2.0 */
/* What wires.c (what ranks say to each other) and wires_join.c (how they come together) share. */
#ifndef TEAM_WIRES_INTERNAL_H
#define TEAM_WIRES_INTERNAL_H
#include "team/channel.h"
#include "team/links.h"
#include "team/rendezvous.h"
#include "team/wires.h"

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

struct wires {
	struct team_links links;
	unsigned rank, size;
	char secret[WIRES_SECRET];
	struct listener door;
	struct mate *mate; /* rank 0: by rank, its own unused; else one */
	unsigned mates;
	struct error left; /* the first that left this step */
	bool fresh;	   /* the next command begins a step */
	uint64_t looked_ns;
};

/* What has come from it already. False: it is lost. */
bool wires_take(struct wires *w, unsigned i);
extern const struct team_links_ops wires_ops;
#endif
