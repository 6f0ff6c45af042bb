/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files up to a size limit, writes files atomically, and computes SHA-256 sums. */
#ifndef CORE_FILE_FILE_H
#define CORE_FILE_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

/* Reads a whole file. *out is NUL-terminated after *size bytes; the caller frees it with free(). Files in
 * /proc and /sys, whose size is not known in advance, work too. BAD_INPUT if the file is larger than
 * size_max or is not a regular file. Never blocks. */
enum status file_read(char **out, size_t *size, const char *path, size_t size_max, struct error *err);
/* Like file_read, but only for a file that no other user can have written: it belongs to this user, is not
 * a symbolic link, and only its owner may write to it. Otherwise BAD_INPUT with a message that names the
 * owner or the mode. Use it for files that assay saves for itself and trusts later. */
enum status file_read_private(char **out, size_t *size, const char *path, size_t size_max, struct error *err);
/*
 * A file being written under a temporary name next to its final path. No other process uses this name, and no
 * symbolic link is followed. If `path` exists already, it must be a regular file (else BAD_INPUT): device
 * nodes, FIFOs, links and folders are never replaced. file_new_begin also deletes temporary files that killed
 * processes left for the same path.
 */
struct file_new {
	char path[4096], beside[4096];
	int fd;	       /* write to it; file_new_end closes it */
	bool unsynced; /* set after file_new_begin for one of many files: file_sync_all flushes them at the
			  end */
};
enum status file_new_begin(struct file_new *f, const char *path, struct error *err);
enum status file_new_write(struct file_new *f, const void *data, size_t size, struct error *err);
/* If `st` is OK, flushes the file to the disk and renames it to its final path; otherwise deletes it.
 * Returns the first status that failed. */
enum status file_new_end(struct file_new *f, enum status st, struct error *err);
/* Flushes a folder's entries to the disk (fsync), so that a new or renamed file survives a power failure. */
enum status file_sync_folder(const char *path, struct error *err);
/* Flushes the whole file system of a folder to the disk. For many small files this takes less time than one
 * flush for each. */
enum status file_sync_all(const char *folder, struct error *err);
/* Identifies the boot and the PID namespace of this process: "5f3a9c21-1b2c-4026531836". Processes that
 * can see each other's process ids have the same text. */
enum { FILE_HERE = 48 };
void file_here(char out[FILE_HERE]);
/* Makes the temporary name for `path`: PATH.PID.HERE.new. False if the name is too long. */
bool file_temporary_name(char *out, size_t size, const char *path);
/* Locks a file or folder that is being written. The lock ends when its last descriptor is closed. */
void file_hold(int fd);
bool file_is_held(const char *path);
/* BUSY if another process holds our temporary name for `path`. This can happen on machines restored from
 * the same snapshot, which have equal boot ids and may have equal process ids. */
enum status file_busy(const char *path, struct error *err);
/* Deletes files and folders that ended processes left next to `path`. It deletes only what this user owns,
 * what was begun in this boot and PID namespace, and what no process holds. So it never deletes the work
 * of another node or container. */
void file_sweep(const char *path);
/* Writes a temporary file and renames it to `path`; if the disk is full, the old file stays. */
enum status file_write(const char *path, const void *data, size_t size, struct error *err);
/* Like file_write, but with mode 0600: only the owner can read and write the file. */
enum status file_write_private(const char *path, const void *data, size_t size, struct error *err);
enum status file_make_dir(const char *path, struct error *err); /* makes parents too */
/* Makes a private directory and its parents: new ones get mode 0700. An existing one keeps its mode. */
enum status file_make_private_dir(const char *path, struct error *err);
/* Deletes a folder with everything below it, as far as permissions allow. Follows no symbolic link. */
void file_remove_tree(const char *path);
/* Writes 64 hex digits and a NUL. */
void file_sha256(char hex[65], const void *data, size_t size);
enum status file_sha256_of(char hex[65], const char *path, struct error *err);
/* Delivers the next bytes of a stream, at most `room`. *got is 0 at the end. */
typedef enum status file_pieces(void *arg, void *to, size_t room, size_t *got, struct error *err);
/* SHA-256 of everything that `next` delivers. Returns the error of `next`. */
enum status file_sha256_pieces(char hex[65], file_pieces *next, void *arg, struct error *err);
#endif
