/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes that cannot hang their parent: each is this program re-executed (or a foreign command) in a
 * process group of its own, dies with its parent, and is ended by TERM, then KILL, then left behind as stuck.
 * Used for facts helpers, samplers and workers alike.
 */
#ifndef CORE_PROCESS_PROCESS_H
#define CORE_PROCESS_PROCESS_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/clock.h"
#include "core/error.h"

struct process {
	pid_t pid;
	int channel; /* our end of a SOCK_STREAM pair, the child's is fd 3; -1: none. CLOEXEC here */
	int output;  /* read end of the child's stdout and stderr; -1: inherited */
	bool ended;
	int wait_status; /* as waitpid gives it, once ended */
};

struct process_spec {
	const char *const *argv;   /* NULL ends; argv[0] NULL: this very program (/proc/self/exe),
				    * the words that follow are its arguments */
	const char *const *env;	   /* "NAME=value" over ours; NULL ends; NULL: none */
	bool channel;		   /* make a socket pair */
	bool capture_output;	   /* stdout and stderr to `output`, else inherited */
	bool stderr_apart;	   /* stderr stays ours, stdout alone is captured */
	const int *input, *errors; /* a descriptor that becomes the child's stdin, its stderr; NULL: ours */
	int shared;		   /* a descriptor of ours that is the child's 4; 0: none */
	int cpu_numa;		   /* -1: anywhere */
	const volatile sig_atomic_t *stop; /* process_run: ended with CANCELLED once it is not 0, at once from
					    * 2 on; NULL: never */
};

/* Dies with the THREAD that started it (PR_SET_PDEATHSIG): start children from a thread that lives as long. A
 * command that cannot be executed is an error here. Zero cpu_numa is node 0: say -1 for anywhere. */
enum status process_start(struct process *p, const struct process_spec *spec, struct error *err);
/* In a child that goes on without exec, first of all: it is killed when `parent` ends, and ends here where
 * that has happened already. */
void process_follow(pid_t parent);
/* True once it has ended; fills wait_status and kills what it left in its process group; never blocks. */
bool process_poll(struct process *p);
/* TERM to the group, up to term_ms for the end, KILL, up to kill_ms; false: it is stuck and left behind. */
bool process_stop(struct process *p, unsigned term_ms, unsigned kill_ms);
/* Closes descriptors. Does not stop a living child. */
void process_release(struct process *p);
/* Runs to its end within limit_ms and takes its stdout (<= size_max bytes; stderr stays ours): for facts
 * helpers. NO_RESOURCE with cause TIMED_OUT at the limit (the child is stopped), STATUS_VENDOR with cause
 * CRASHED where it died of a signal, CANCELLED with cause INTERRUPTED where spec->stop asked for it,
 * *exit_code otherwise. Owner of *out: caller, free(). */
enum status process_run(const struct process_spec *spec, unsigned limit_ms, size_t size_max, char **out,
			size_t *size, int *exit_code, struct error *err);
/* The calling thread runs on the CPUs of this NUMA node alone from now on. */
enum status process_bind_thread(int numa, struct error *err);
/* When this process was started, CLOCK_MONOTONIC in steps of a clock tick (10 ms); 0 where it cannot be read.
 */
uint64_t process_started_ns(void);
enum { PROCESS_BUILD = 17 };
/* Which program this is: the first 16 digits of the linker's build id, or of its file's SHA-256 where it has
 * none; "" where that cannot be read. */
void process_build(char out[PROCESS_BUILD]);
/* "signal 11 (Segmentation fault)" or "exit code 3". */
void process_wait_text(int wait_status, char *out, size_t size);
#endif
