/* SPDX-License-Identifier: Apache-2.0 */
/* Where a process of this user stands: what its main thread waits for, from /proc. */
#ifndef CORE_PROCESS_PLACE_H
#define CORE_PROCESS_PLACE_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Completes "its host thread ..": "computes", "is stopped (SIGSTOP)", "waits in read() of rows.jsonl", "waits
 * for another of its threads, and thread 71 waits in fsync() of model.bin". The system call and its file are
 * readable for child processes; if they are not, the text has the kernel's name of the wait, or says that it
 * cannot be read. `root`: "/proc", or a test's folder. *state: as in /proc/PID/stat, 0 if unknown; may be
 * NULL.
 */
void process_place_text(char *out, size_t size, const char *root, pid_t pid, char *state);
#endif
