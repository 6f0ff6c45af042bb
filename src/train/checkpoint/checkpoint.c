/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a checkpoint: files and manifest into a temporary folder, sync, rename, then the file `latest`. */
#include "train/checkpoint/checkpoint.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/names.h"

/* Writes the states one after another. */
static enum status write_optimizer(const char *dir, const struct params *p, struct error *err)
{
	struct params states = *p;
	char path[PATH_MAX + 96];
	struct file_new f;
	enum status st;

	snprintf(path, sizeof(path), "%s/" CHECKPOINT_OPTIMIZER, dir);
	st = file_new_begin(&f, path, err);
	for (int i = 0; i < PARAMS_STATE_COUNT && !st; i++) {
		const uint64_t bytes = params_state_bytes(p, (enum params_state)i);

		if (bytes)
			st = file_new_write(&f, params_state(&states, (enum params_state)i)->data, bytes,
					    err);
	}
	return file_new_end(&f, st, err);
}

static enum status write_json(const char *dir, const char *name, const json_t *json, struct error *err)
{
	char path[PATH_MAX + 64], *text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
	struct file_new f;
	enum status st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!text)
		return error_errno(err, ENOMEM, "%s", path);
	st = file_new_begin(&f, path, err);
	if (!st)
		st = file_new_write(&f, text, strlen(text), err);
	free(text);
	return file_new_end(&f, st, err);
}

/* Does not create parent folders: otherwise a removed run directory would come back with only a checkpoint.
 */
static enum status make_folder(const char *dir, struct error *err)
{
	return mkdir(dir, 0777) ? error_errno(err, errno, "cannot create %s", dir) : STATUS_OK;
}

/* Everything but the states and the manifest. */
static enum status write_rest(const char *dir, const struct checkpoint_source *c, struct error *err)
{
	enum status st = write_json(dir, CHECKPOINT_STATE, c->state, err);

	return st || !c->more ? st : c->more(c->arg, dir, c->params, err);
}

/* Takes ownership of the manifest. */
static enum status seal(const char *dir, json_t *manifest, struct error *err)
{
	enum status st = write_json(dir, CHECKPOINT_MANIFEST, manifest, err);

	json_decref(manifest);
	return st ? st : file_sync_folder(dir, err);
}

static enum status fill_folder(const char *dir, const struct checkpoint_source *c, struct error *err)
{
	json_t *manifest = NULL;
	enum status st = make_folder(dir, err);

	if (!st)
		st = write_optimizer(dir, c->params, err);
	if (!st)
		st = write_rest(dir, c, err);
	if (!st)
		st = manifest_make(&manifest, dir, c->step, c->params, err);
	return st ? st : seal(dir, manifest, err);
}

/* An existing checkpoint of that name is exchanged atomically, so that one of them always exists. */
static enum status put_in_place(const char *temporary, const char *path, struct error *err)
{
	struct stat about;
	unsigned flags = lstat(path, &about) ? 0 : RENAME_EXCHANGE;

	if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, flags))
		return error_errno(err, errno, "cannot rename %s", temporary);
	return STATUS_OK;
}

/* Gives a complete folder its name. The temporary one is removed, also after an error. */
static enum status publish(const char *temporary, const struct checkpoint_source *c, enum status st,
			   struct error *err)
{
	char path[PATH_MAX + 64], latest[PATH_MAX + 64], name[64];

	checkpoint_path(path, c->run, c->step, "");
	if (!st)
		st = put_in_place(temporary, path, err);
	if (!st)
		st = file_sync_folder(c->run, err);
	snprintf(latest, sizeof(latest), "%s/latest", c->run);
	snprintf(name, sizeof(name), CHECKPOINT_NAME "\n", c->step);
	if (!st)
		st = file_write(latest, name, strlen(name), err);
	file_remove_tree(temporary);
	return st ? st : file_sync_folder(c->run, err);
}

enum status checkpoint_write(const struct checkpoint_source *c, struct error *err)
{
	char temporary[PATH_MAX + 64];

	checkpoint_path(temporary, c->run, c->step, CHECKPOINT_NEW);
	file_remove_tree(temporary);
	return publish(temporary, c, fill_folder(temporary, c, err), err);
}

enum status checkpoint_folder(char out[PATH_MAX + 64], const char *run, uint64_t step, const char *attempt,
			      struct error *err)
{
	char *whole = realpath(run, NULL), suffix[64];
	enum status st = STATUS_OK;

	if (!whole || strlen(whole) >= PATH_MAX)
		st = error_errno(err, errno, "%s", run);
	snprintf(suffix, sizeof(suffix), CHECKPOINT_NEW_OF, attempt);
	if (!st)
		checkpoint_path(out, whole, step, suffix);
	free(whole);
	if (st)
		return st;
	file_remove_tree(out);
	return make_folder(out, err);
}

enum status checkpoint_write_part(const struct checkpoint_source *c, json_t **report, struct error *err)
{
	const struct checkpoint_part *p = c->part;
	enum status st = shard_write(report, p->folder, p->shard, p->rank, p->ranks, err);

	if (!st && p->parts)
		json_object_set_new(*report, "part", json_integer((json_int_t)p->parts->rank));
	if (!st && !p->rank)
		st = write_rest(p->folder, c, err);
	return st ? st : file_sync_folder(p->folder, err);
}

enum status checkpoint_join(const struct checkpoint_source *c, const json_t *reports, struct error *err)
{
	json_t *manifest = NULL;
	enum status st =
		manifest_join(&manifest, c->part->folder, c->step, c->params, c->part->parts, reports, err);

	if (!st)
		st = seal(c->part->folder, manifest, err);
	return publish(c->part->folder, c, st, err);
}

void checkpoint_thin(const char *run, unsigned keep, uint64_t best)
{
	struct checkpoint_list list;
	char path[PATH_MAX + 64], half[PATH_MAX + 64];
	unsigned kept = 0;

	if (!keep || checkpoint_list_read(&list, run, NULL))
		return;
	for (size_t i = 0; i < list.count; i++) {
		if (list.entry[i].state != CHECKPOINT_NAMED)
			continue;
		if (kept++ < keep || list.entry[i].step == best)
			continue;
		checkpoint_path(path, run, list.entry[i].step, "");
		checkpoint_path(half, run, list.entry[i].step, CHECKPOINT_NEW);
		file_remove_tree(half);
		if (!rename(path, half)) /* a partly removed checkpoint must not keep its name */
			file_remove_tree(half);
	}
	checkpoint_list_release(&list);
}
