/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small texts that this user's processes keep for later ones: one file a key, below $XDG_CACHE_HOME/assay, or
 * below $HOME/.cache/assay. Nothing depends on them: what cannot be read, or cannot be believed, is as if it
 * had never been kept. Several processes may read and write at once.
 */
#ifndef CORE_FILE_USER_CACHE_H
#define CORE_FILE_USER_CACHE_H
#include <limits.h>
#include <stddef.h>
#include "core/error.h"

enum {
	USER_CACHE_MOST = 1 << 20, /* bytes of a file */
	USER_CACHE_FILES = 64,	   /* in a folder; those that were used longest ago make room */
	USER_CACHE_ID = 33	   /* 32 hex digits and NUL */
};

struct user_cache {
	char dir[PATH_MAX];
};

/* The folder `name` of the cache; nothing is made yet. UNAVAILABLE: no variable names an absolute path. */
enum status user_cache_open(struct user_cache *c, const char *name, struct error *err);
/* *body: what was kept under the key, one line of text. Owner: caller, free(). NULL, with OK: nothing is.
 * BAD_INPUT: a file is there and is not believed: it is not ours alone, a link, cut, damaged, of another
 * version or of another key. The message says which. */
enum status user_cache_read(const struct user_cache *c, const char *key, char **body, struct error *err);
/* Makes the folder, of mode 0700, and the file, of mode 0600: written beside and renamed. */
enum status user_cache_write(const struct user_cache *c, const char *key, const char *body,
			     struct error *err);
/* A key's short name: a file's, and what a journal calls it. */
void user_cache_id(char id[USER_CACHE_ID], const char *key);
/* The body within a file's bytes, which it points into; data[size] is NUL. BAD_INPUT: no such file of this
 * key. (Fuzzed.) */
enum status user_cache_parse(const char **body, const char *data, size_t size, const char *key,
			     struct error *err);
#endif
