/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes that cannot hang their parent. A child is this program executed again, or a foreign
 * command, in its own process group. It dies with its parent. To end it, the parent sends TERM, then KILL,
 * and then leaves it behind as stuck. Fact helpers, samplers and workers all use this. */
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
	int channel; /* parent's end of a SOCK_STREAM pair (CLOEXEC); the child's end is fd 3; -1: none */
	int output;  /* read end of the child's stdout and stderr; -1: inherited */
	bool ended;
	int wait_status; /* as waitpid returns it, once the child has ended */
};

struct process_spec {
	const char *const *argv;   /* NULL ends; argv[0] NULL: this program (/proc/self/exe) with the
				    * following words as arguments */
	const char *const *env;	   /* "NAME=value" in addition to our environment; NULL ends; NULL: none */
	bool channel;		   /* make a socket pair */
	bool capture_output;	   /* stdout and stderr go to `output`; otherwise inherited */
	bool stderr_apart;	   /* stderr is inherited, only stdout is captured */
	const int *input, *errors; /* descriptors for the child's stdin and stderr; NULL: inherited */
	int shared;		   /* a descriptor that becomes the child's fd 4; 0: none */
	int cpu_numa;		   /* NUMA node to run on; -1: any */
	const volatile sig_atomic_t *stop; /* process_run: a value other than 0 ends it with CANCELLED, at
					    * once from 2 on; NULL: never */
};

/* Starts a child. It dies with the THREAD that started it (PR_SET_PDEATHSIG), so start it from a thread
 * that lives long enough. A command that cannot be executed is an error here. Note that cpu_numa 0 means
 * node 0; use -1 for any node. */
enum status process_start(struct process *p, const struct process_spec *spec, struct error *err);
/* For a child that continues without exec; call it first. The child is killed when `parent` ends, and
 * exits here if the parent has ended already. */
void process_follow(pid_t parent);
/* True once the child has ended. Then wait_status is set, and remaining processes of its group are killed.
 * Never blocks. */
bool process_poll(struct process *p);
/* Sends TERM to the group and waits up to term_ms, then KILL and waits up to kill_ms. False if the child
 * is stuck. */
bool process_stop(struct process *p, unsigned term_ms, unsigned kill_ms);
/* Closes the descriptors. Does not stop a running child. */
void process_release(struct process *p);
/*
 * Runs a command to its end, at most limit_ms, and returns its stdout (at most size_max bytes; stderr is
 * inherited). Used for fact helpers. Errors: NO_RESOURCE with cause TIMED_OUT at the limit (the child is
 * stopped), VENDOR with cause CRASHED if a signal ended it, CANCELLED with cause INTERRUPTED if spec->stop
 * requested it. Otherwise *exit_code is set. The caller frees *out with free().
 */
enum status process_run(const struct process_spec *spec, unsigned limit_ms, size_t size_max, char **out,
			size_t *size, int *exit_code, struct error *err);
/* Binds the calling thread to the CPUs of one NUMA node. */
enum status process_bind_thread(int numa, struct error *err);
/* The start time of this process on CLOCK_MONOTONIC, in steps of a clock tick (10 ms); 0 if it cannot be
 * read. */
uint64_t process_started_ns(void);
enum { PROCESS_BUILD = 17 };
/* Identifies this build of the program: the first 16 digits of the linker's build id, or of the file's
 * SHA-256 if it has no build id. "" if neither can be read. */
void process_build(char out[PROCESS_BUILD]);
/* Describes a wait status: "signal 11 (Segmentation fault)" or "exit code 3". */
void process_wait_text(int wait_status, char *out, size_t size);
#endif
