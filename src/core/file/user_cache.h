/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of small texts that this user's processes save for later processes. There is one file per key,
 * below $XDG_CACHE_HOME/assay or $HOME/.cache/assay. Nothing depends on the cache: an unreadable or
 * untrusted file counts as absent. Several processes may read and write at the same time. */
#ifndef CORE_FILE_USER_CACHE_H
#define CORE_FILE_USER_CACHE_H
#include <limits.h>
#include <stddef.h>
#include "core/error.h"

enum {
	USER_CACHE_MOST = 1 << 20, /* maximum bytes of a file */
	USER_CACHE_FILES = 64,	   /* maximum files in a folder; the least recently used ones are deleted */
	USER_CACHE_ID = 33	   /* 32 hex digits and NUL */
};

struct user_cache {
	char dir[PATH_MAX];
};

/* Selects the folder `name` of the cache without creating it. UNAVAILABLE if neither variable holds an
 * absolute path. */
enum status user_cache_open(struct user_cache *c, const char *name, struct error *err);
/*
 * Reads the body saved under the key, one line of text. The caller frees *body with free(). *body is NULL
 * with status OK if nothing is saved. BAD_INPUT if a file exists but is not trusted: other users can write
 * it, it is a symbolic link, it is truncated or damaged, or it has another version or key. The message says
 * which.
 */
enum status user_cache_read(const struct user_cache *c, const char *key, char **body, struct error *err);
/* Saves a body: makes the folder with mode 0700 and the file with mode 0600. The write is atomic. */
enum status user_cache_write(const struct user_cache *c, const char *key, const char *body,
			     struct error *err);
/* Makes a short id for a key. It is the file's name, and journals refer to the entry by it. */
void user_cache_id(char id[USER_CACHE_ID], const char *key);
/* Finds the body within a file's bytes; *body points into `data`. data[size] is NUL. BAD_INPUT if it is
 * not a valid file of this key. (Fuzzed.) */
enum status user_cache_parse(const char **body, const char *data, size_t size, const char *key,
			     struct error *err);
#endif
