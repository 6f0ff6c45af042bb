/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the members of an archive are those of a run. The cost is linear in the bytes: names are
 * hashed, and an archive with too many members or too many unpacked bytes is refused.
 */
#ifndef REPORT_FILES_PACK_CHECK_H
#define REPORT_FILES_PACK_CHECK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

enum { PACK_FILES_MAX = 16384, PACK_NODES_DEPTH = 3, PACK_PARTS_DEPTH = 2 };
/* The file that shows that a folder holds several runs. */
#define PACK_COLLECTION "index.html"

/* True for the name of one file or folder in ASCII that is safe to unpack and print. */
bool pack_plain(const char *name, size_t size);
/* True if a folder of this name, `depth` folders down, can have other ranks' journals
 * (journal/file/rank_dir.h). */
bool pack_is_nodes(const char *name, unsigned depth);

/* True if a folder of this name inside a run's folder is a run itself: "stage-2-load" of `assay
 * comprehensive`, and "serve", the server of a load test. */
bool pack_is_part(const char *name);

struct pack_check;
/* Starts a check; the caller frees it with pack_check_free. `packed`: size of the archive in bytes. NULL: out
 * of memory. */
struct pack_check *pack_check_begin(uint64_t packed);
/* Checks one member; a `visit` function for struct pack_module. `arg`: the check. Returns 0 to continue, else
 * the rest is not read. */
int pack_check_member(void *arg, const char *name, const void *data, size_t size);
/* True if a member was refused; then *err (MISMATCH) says which one and why. */
bool pack_check_refusal(const struct pack_check *c, const char *path, struct error *err);
/* Ends the check after the last member: every member has its checksum, every checksum has its member, and
 * there is a journal. */
enum status pack_check_end(const struct pack_check *c, const char *path, size_t *files, struct error *err);
void pack_check_free(struct pack_check *c);
#endif
