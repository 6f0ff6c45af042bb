/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a node gets: the program and its libraries, files of the user, and the command. */
#ifndef DEPLOY_BUNDLE_H
#define DEPLOY_BUNDLE_H
#include <limits.h>
#include <stdint.h>
#include "core/input/opt.h"
#include "core/text/text.h"

enum { BUNDLE_FILES_MAX = 1024 };

struct bundle_file {
	char *path; /* on this machine; NULL: the file is `text` */
	char *text;
	char *name; /* below the run's folder: "bundle/lib/libz.so.1", "work/my.yaml", "command" */
	uint64_t size;
	char sum[65];
	bool executable;
};

struct bundle {
	struct bundle_file *file;
	size_t count;
	char arch[16]; /* as uname -m prints it; "": not known */
};

/* Chooses the folder of the bundle. Without `given`, it is the folder of this program if that is a bundle, or
 * else the bundle in this program's build folder. BAD_INPUT: there is none. The message says how to make it.
 */
enum status bundle_find(char dir[PATH_MAX], const char *given, struct error *err);
/* Adds DIR/assay and all regular files below DIR/lib, in name order, and computes their checksums. BAD_INPUT:
 * a name has characters other than A-Za-z0-9._@:+=,- or DIR has no program. Owner: caller, bundle_release. */
enum status bundle_read(struct bundle *b, const char *dir, struct error *err);
/* Adds one file of the user. It gets the last part of its path as its name below work/. */
enum status bundle_add_file(struct bundle *b, const char *path, struct error *err);
/* Adds the script that runs `words` with the program of the bundle, after setting `env` (NAME=value). */
enum status bundle_add_command(struct bundle *b, const struct opt_words *env, const struct opt_words *words,
			       struct error *err);
/* The SHA-256 of the program's files: what runs on the nodes. */
void bundle_id(char id[65], const struct bundle *b);
void bundle_release(struct bundle *b);

/* The copy that a node lacks, as one file: a header of lines for node.sh, then each missing file from a block
 * of 4096 bytes on. */
struct upload {
	char path[PATH_MAX], sum[65];
	uint64_t size;
	unsigned header; /* blocks */
};
/* Writes the upload into `folder`, unless the same one is there already. `have` has one entry for each file
 * of the bundle. `known` is another host's upload, or NULL. If it is the same one, its checksum is used. */
enum status upload_make(struct upload *u, const struct bundle *b, const bool *have, const char *folder,
			const struct upload *known, struct error *err);
#endif
