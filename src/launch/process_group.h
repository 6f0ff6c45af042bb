/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts several programs, reads their stderr and ends them together: the ranks of a node, or one ssh for
 * each host. A program that hangs does not block the caller: it gets TERM or the end of its input, then KILL.
 */
#ifndef LAUNCH_PROCESS_GROUP_H
#define LAUNCH_PROCESS_GROUP_H
#include "core/log.h"
#include "core/process/process.h"

enum { PROCESS_GROUP_LINE = 512, PROCESS_GROUP_SAVE_MS = 600000 };
#define PROCESS_GROUP_SAVE "save\n"

struct member {
	/* Filled by the caller, borrowed. */
	char name[256];		 /* "rank 3", "gpu7": for messages */
	const char *const *argv; /* as in process_spec */
	const char *const *env;

	struct process process;
	int input, errors; /* this process's ends of its stdin and stderr; -1: closed or not piped */
	bool started, begun, ended;
	char last[PROCESS_GROUP_LINE]; /* the last complete line of its stderr */
	char part[PROCESS_GROUP_LINE]; /* of an incomplete line */
	size_t part_size;
};

struct process_group {
	struct member *member;
	size_t count;
	/* A line written to each member's stdin, which then stays open; its end tells the member to end.
	 * NULL: stdin is not piped, and TERM ends a member. */
	const char *greeting;
	/* Called for each line of a member's stderr, which is then passed on to this process's stderr. NULL:
	 * members inherit stderr. */
	void (*hears)(void *arg, const char *line);
	void *arg;
	const char *begins;  /* line on stderr that marks a started member; not passed on */
	unsigned starting;   /* most members in the process of starting; 0: no limit */
	int lifeline;	     /* descriptor of this process: end all when it closes; -1: none */
	bool alone_ends_all; /* a member that ends before it has started ends all */
	const volatile sig_atomic_t *stop;
	/* With `saves`: if the first request to stop is a preemption, or the lifeline brings one, the members
	 * get USR1 (or PROCESS_GROUP_SAVE on their stdin) and have PROCESS_GROUP_SAVE_MS to end by
	 * themselves. Then the result is that of their ends. NULL: every request to stop ends them at once.
	 */
	const volatile sig_atomic_t *preempted;
	bool saves;
	bool asked_to_save; /* by the lifeline */
	uint64_t saving_ns; /* since when the members save; 0: they do not */
	const struct log *log;
};

/* Starts all members and waits for their ends. Not OK: one could not be started; with alone_ends_all, one
 * ended before it had started, and the message names it with its last line; or all were stopped on request
 * (CANCELLED). All have ended then too. Each member's end is in process.wait_status. */
enum status process_group_run(struct process_group *c, struct error *err);
/* The largest code of the members (launch/rank_exit.h). Death by a signal, and an exit code that assay does
 * not use, are inconclusive and are logged. */
int process_group_exit(const struct process_group *c);
#endif
