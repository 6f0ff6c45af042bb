/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the members of an archive, one after the other, are those of a run. Costs as much as there are
 * bytes: names are looked up, and an archive with more members or many times more bytes than a run's has is
 * refused.
 */
#ifndef REPORT_FILES_PACK_CHECK_H
#define REPORT_FILES_PACK_CHECK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

enum { PACK_FILES_MAX = 16384, PACK_NODES_DEPTH = 3 };

/* One name of a file or folder, in ASCII, as anybody may unpack and print it. */
bool pack_plain(const char *name, size_t size);
/* Where the other ranks' journals are (journal/file/rank_dir.h): the folder of this name, so many folders
 * down. */
bool pack_is_nodes(const char *name, unsigned depth);

struct pack_check;
/* `packed`: bytes of the archive. NULL: no memory. */
struct pack_check *pack_check_begin(uint64_t packed);
/* `arg`: the check. 0: go on; else what follows is not looked at. As struct pack_module wants it. */
int pack_check_member(void *arg, const char *name, const void *data, size_t size);
/* Whether a member was refused, and then *err (MISMATCH) says which and why. */
bool pack_check_refusal(const struct pack_check *c, const char *path, struct error *err);
/* After the last one: all have their checksums, which are of all, and a journal is among them. */
enum status pack_check_end(const struct pack_check *c, const char *path, size_t *files, struct error *err);
void pack_check_free(struct pack_check *c);
#endif
