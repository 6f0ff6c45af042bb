/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files with a limit, atomic writes, SHA-256. */
#ifndef CORE_FILE_FILE_H
#define CORE_FILE_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

/* Owner: caller, free(). NUL-terminated after `size` bytes. Reads /proc and /sys files too (size unknown
 * before). Larger than size_max, or no regular file: BAD_INPUT, and never waited for. */
enum status file_read(char **out, size_t *size, const char *path, size_t size_max, struct error *err);
/* The same of a file that only we can have written: ours, no link, writable by nobody else. Else BAD_INPUT
 * that says whose it is. For what we keep for ourselves and believe later. */
enum status file_read_private(char **out, size_t *size, const char *path, size_t size_max, struct error *err);
/* A file under way beside the one it will be: nothing else has its name, no link is followed. What stands at
 * `path` already is a regular file (else BAD_INPUT): device nodes, FIFOs, links and folders are not replaced.
 * What killed processes left of the same is swept. */
struct file_new {
	char path[4096], beside[4096];
	int fd; /* write to it; file_new_end closes it */
};
enum status file_new_begin(struct file_new *f, const char *path, struct error *err);
enum status file_new_write(struct file_new *f, const void *data, size_t size, struct error *err);
/* `st` OK: to the disk and renamed; else taken away. Returns the first that failed. */
enum status file_new_end(struct file_new *f, enum status st, struct error *err);
/* What a folder lists is on the disk once the folder is. */
enum status file_sync_folder(const char *path, struct error *err);
/* Boot and PID namespace of this process: "5f3a9c21-1b2c-4026531836", the same for all that can see each
 * other's process ids. */
enum { FILE_HERE = 48 };
void file_here(char out[FILE_HERE]);
/* The name of what is written beside `path` until it is whole: PATH.PID.HERE.new. False: too long. */
bool file_beside(char *out, size_t size, const char *path);
/* Marks a file or folder under way as one that somebody writes, until its last descriptor is closed. */
void file_hold(int fd);
bool file_is_held(const char *path);
/* BUSY, for a name of ours beside `path` that is held. A machine of the same snapshot may have our number. */
enum status file_busy(const char *path, struct error *err);
/* Takes away what ended processes left beside `path`, files and folders. It takes only what is ours, was
 * begun in this boot and PID namespace, and is not held: never the work of another node or container. */
void file_sweep(const char *path);
/* Writes beside and renames; a full disk leaves the old file. */
enum status file_write(const char *path, const void *data, size_t size, struct error *err);
/* The same, readable and writable by nobody else. */
enum status file_write_private(const char *path, const void *data, size_t size, struct error *err);
enum status file_make_dir(const char *path, struct error *err); /* with parents */
/* The same for what is private: new, it is of mode 0700. One that is there stays as its owner made it. */
enum status file_make_private_dir(const char *path, struct error *err);
/* With all that is below it, as far as that can be; follows no link. */
void file_remove_tree(const char *path);
/* 64 hex digits and NUL. */
void file_sha256(char hex[65], const void *data, size_t size);
enum status file_sha256_of(char hex[65], const char *path, struct error *err);
/* The next bytes of something, at most `room`; *got 0: its end. */
typedef enum status file_pieces(void *arg, void *to, size_t room, size_t *got, struct error *err);
/* Of all that `next` gives, a piece at a time; its error. */
enum status file_sha256_pieces(char hex[65], file_pieces *next, void *arg, struct error *err);
#endif
