/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several programs started, listened to and ended together: the ranks of a node, the ssh of each host. None
 * of them can hang us: TERM or the end of their input, then KILL.
 */
#ifndef LAUNCH_PROCESS_GROUP_H
#define LAUNCH_PROCESS_GROUP_H
#include "core/log.h"
#include "core/process/process.h"

enum { PROCESS_GROUP_LINE = 512 };

struct member {
	/* Filled by the caller, lent. */
	char name[256];		 /* "rank 3", "gpu7": for messages */
	const char *const *argv; /* as process_spec's */
	const char *const *env;

	struct process process;
	int input, errors; /* our ends of its stdin and stderr; -1: closed or not taken */
	bool started, begun, ended;
	char last[PROCESS_GROUP_LINE]; /* the last whole line of its stderr */
	char part[PROCESS_GROUP_LINE]; /* of a line that is not whole yet */
	size_t part_size;
};

struct process_group {
	struct member *member;
	size_t count;
	/* A line that each is told first, its input then stays open: its end tells it to end. NULL: no pipes
	 * are made, and TERM does that. */
	const char *greeting;
	/* Takes each line of a member's stderr, which goes on to ours as it comes; NULL: theirs is ours. */
	void (*hears)(void *arg, const char *line);
	void *arg;
	const char *begins;  /* the line of its stderr that says it runs; kept to ourselves */
	unsigned starting;   /* at most so many are on the way at once; 0: all */
	int lifeline;	     /* our own: end all when it closes; -1: none */
	bool alone_ends_all; /* one that ends before it has begun ends all */
	const volatile sig_atomic_t *stop;
	const struct log *log;
};

/* Starts all and waits for their ends. Not OK: one could not be started or, with alone_ends_all, has not
 * begun (the sentence names it with its last line), or all were stopped on request (CANCELLED); all have
 * ended then too. Each member's end is in process.wait_status. */
enum status process_group_run(struct process_group *c, struct error *err);
/* How they ended, the one that says most (launch/rank_exit.h). Death by a signal, and an exit code that assay
 * does not have, are inconclusive and are logged. */
int process_group_told(const struct process_group *c);
#endif
