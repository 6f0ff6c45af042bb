/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/timeline/timeline.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/mapped.h"
#include "core/text/text.h"
#include "profile/timeline/build.h"

enum { EVENTS_MAX = 50000000, PROCESSES_MAX = 4096 };

static const struct {
	const char *name, *category;
	bool on_device;
} kinds[] = {
#define X(name, text, category, on_device) [TIMELINE_##name] = {text, category, on_device},
	TIMELINE_KINDS(X)
#undef X
};

const char *timeline_kind_name(enum timeline_kind kind)
{
	return kinds[kind].name;
}

const char *timeline_kind_category(enum timeline_kind kind)
{
	return kinds[kind].category;
}

bool timeline_on_device(enum timeline_kind kind)
{
	return kinds[kind].on_device;
}

const char *timeline_name(const struct timeline *t, uint32_t name)
{
	return name < t->names ? t->name[name] : "";
}

const struct timeline_event *timeline_call(const struct timeline *t, const struct timeline_event *e)
{
	size_t low = 0, high = t->calls;

	if (!e->correlation || !timeline_on_device(e->kind))
		return NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct timeline_event *c = &t->event[t->call[middle]];

		if (c->process < e->process || (c->process == e->process && c->correlation < e->correlation))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < t->calls) {
		const struct timeline_event *c = &t->event[t->call[low]];

		if (c->process == e->process && c->correlation == e->correlation)
			return c;
	}
	return NULL;
}

const struct timeline_device *timeline_device_of(const struct timeline *t, uint16_t process, uint32_t id)
{
	for (size_t i = 0; i < t->devices; i++)
		if (t->device[i].process == process && t->device[i].id == id)
			return &t->device[i];
	return NULL;
}

/* Reads a ring file with arbitrary content. Problems are appended to *note. */
static enum status read_file(struct build *b, const char *name, const void *data, size_t size,
			     struct text *note, struct error *err)
{
	struct error why = {0};
	struct ring_file f;
	struct timeline_process *p;
	enum status st = ring_file_open(&f, name, data, size, &why);

	if (st == STATUS_BAD_INPUT) {
		text_addf(note, "%s\n", why.text);
		ring_file_release(&f);
		return STATUS_OK;
	}
	p = st || b->t->processes >= PROCESSES_MAX
		    ? NULL
		    : BUILD_MORE(b, b->t->process, b->t->processes, b->process_room);
	if (p) {
		p->file = strdup(name);
		b->process = (uint16_t)(b->t->processes - 1);
		build_file(b, &f);
	}
	ring_file_release(&f);
	if (b->out_of_memory || st)
		return error_errno(err, ENOMEM, "cannot read the records of %s", name);
	return STATUS_OK;
}

/* The file is mapped, because it may be larger than the free memory. */
static enum status read_path(struct build *b, const char *dir, const char *name, struct text *note,
			     struct error *err)
{
	enum status st = STATUS_OK;
	char path[4096];
	struct stat info;
	void *data;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return STATUS_OK;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &info) || !S_ISREG(info.st_mode)) {
		text_addf(note, "%s cannot be read\n", path);
	} else if (!info.st_size) {
		text_addf(note, "%s is empty: its process could not write the header; the disk may be full\n",
			  path);
	} else {
		st = mapped_take(&data, fd, (uint64_t)info.st_size, path, err);
		if (!st)
			st = mapped_check(read_file(b, name, data, (size_t)info.st_size, note, err), err);
		mapped_close(data, (uint64_t)info.st_size);
	}
	if (fd >= 0)
		close(fd);
	return st;
}

static int is_ring(const struct dirent *entry)
{
	size_t size = strlen(entry->d_name);

	return size > 5 && !strcmp(entry->d_name + size - 5, ".ring");
}

static enum status read_all(struct build *b, const char *dir, struct text *note, struct error *err)
{
	struct dirent **entry = NULL;
	int count = scandir(dir, &entry, is_ring, versionsort);
	enum status st = STATUS_OK;

	if (count < 0)
		return error_errno(err, errno, "cannot read the folder %s", dir);
	build_name(b, "");
	for (int i = 0; i < count; i++) {
		if (!st)
			st = read_path(b, dir, entry[i]->d_name, note, err);
		free(entry[i]);
	}
	free(entry);
	return st;
}

enum status timeline_read(struct timeline *t, const char *dir, size_t events_max, struct text *note,
			  struct error *err)
{
	struct build b = {.t = t, .events_max = events_max ? events_max : EVENTS_MAX};
	enum status st;

	*t = (struct timeline){0};
	st = read_all(&b, dir, note, err);
	if (!st)
		st = build_finish(&b, err);
	hash_release(&b.names);
	hash_release(&b.tracks);
	free(b.below);
	if (st)
		timeline_release(t);
	return st;
}

void timeline_release(struct timeline *t)
{
	for (size_t i = 0; i < t->processes; i++) {
		free(t->process[i].command);
		free(t->process[i].file);
		free(t->process[i].note);
		free(t->process[i].library);
	}
	for (size_t i = 0; i < t->names; i++)
		free(t->name[i]);
	free(t->name);
	free(t->process);
	free(t->device);
	free(t->track);
	free(t->event);
	free(t->by_track);
	free(t->kernel);
	free(t->copy);
	free(t->range);
	free(t->value);
	free(t->comm);
	free(t->counted);
	free(t->call);
	*t = (struct timeline){0};
}
