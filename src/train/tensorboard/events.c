/* SPDX-License-Identifier: Apache-2.0 */
/* The file is a series of records: length, its checksum, data, their checksum; all little-endian. The data
 * are protobuf messages. */
#include "train/tensorboard/events.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <unistd.h>
#include "core/file/file.h"
#include "train/tensorboard/event.pb-c.h"

enum { SCALARS_MAX = 32, HEAD = 12, TAIL = 4 };

struct events {
	int fd;
	char path[PATH_MAX + 64];
};

/* The masked CRC-32C of the format. */
static uint32_t masked_crc(const void *data, size_t size)
{
	const uint8_t *byte = data;
	uint32_t crc = 0xffffffffu;

	for (size_t i = 0; i < size; i++) {
		crc ^= byte[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	crc = ~crc;
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_le(uint8_t *out, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> 8 * i);
}

static enum status write_record(struct events *e, const Assay__Tensorboard__Event *event, struct error *err)
{
	size_t size = assay__tensorboard__event__get_packed_size(event);
	uint8_t *record = malloc(HEAD + size + TAIL);
	enum status st = STATUS_OK;
	ssize_t put;

	if (!record)
		return error_errno(err, ENOMEM, "%s", e->path);
	put_le(record, size, 8);
	put_le(record + 8, masked_crc(record, 8), 4);
	assay__tensorboard__event__pack(event, record + HEAD);
	put_le(record + HEAD + size, masked_crc(record + HEAD, size), 4);
	do /* one write per record, so that a concurrent reader sees complete records */
		put = write(e->fd, record, HEAD + size + TAIL);
	while (put < 0 && errno == EINTR);
	if (put != (ssize_t)(HEAD + size + TAIL))
		st = error_errno(err, put < 0 ? errno : ENOSPC, "cannot write %s", e->path);
	free(record);
	return st;
}

/* The file name contains a fixed host name, because a run directory records no host names. */
enum status events_open(struct events **out, const char *dir, double wall, struct error *err)
{
	static char version[] = "brain.Event:2";
	Assay__Tensorboard__Event first = ASSAY__TENSORBOARD__EVENT__INIT;
	struct events *e = calloc(1, sizeof(*e));
	enum status st;

	*out = NULL;
	if (!e)
		return error_errno(err, ENOMEM, "%s", dir);
	e->fd = -1;
	st = file_make_dir(dir, err);
	for (int n = 0; !st && e->fd < 0; n++) {
		snprintf(e->path, sizeof(e->path), "%s/events.out.tfevents.%.0f.assay.%ld.%d", dir, wall,
			 (long)getpid(), n);
		e->fd = open(e->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
		if (e->fd < 0 && errno != EEXIST)
			st = error_errno(err, errno, "cannot create %s", e->path);
	}
	first.wall_time = wall;
	first.has_wall_time = true;
	first.file_version = version;
	if (!st)
		st = write_record(e, &first, err);
	if (st)
		events_close(&e);
	*out = e;
	return st;
}

enum status events_add(struct events *e, double wall, int64_t step, const struct scalar *scalars,
		       size_t count, struct error *err)
{
	Assay__Tensorboard__Summary__Value value[SCALARS_MAX], *pointer[SCALARS_MAX];
	Assay__Tensorboard__Summary summary = ASSAY__TENSORBOARD__SUMMARY__INIT;
	Assay__Tensorboard__Event event = ASSAY__TENSORBOARD__EVENT__INIT;

	if (count > SCALARS_MAX)
		return error_set(err, STATUS_BUG, "%s: %zu scalars in one event", e->path, count);
	for (size_t i = 0; i < count; i++) {
		value[i] = (Assay__Tensorboard__Summary__Value)ASSAY__TENSORBOARD__SUMMARY__VALUE__INIT;
		value[i].tag = (char *)(uintptr_t)scalars[i].tag;
		value[i].has_simple_value = true;
		value[i].simple_value = (float)scalars[i].value;
		pointer[i] = &value[i];
	}
	summary.n_value = count;
	summary.value = pointer;
	event.wall_time = wall;
	event.step = step;
	event.has_wall_time = event.has_step = true;
	event.summary = &summary;
	return write_record(e, &event, err);
}

void events_close(struct events **e)
{
	if (!*e)
		return;
	if ((*e)->fd >= 0)
		close((*e)->fd);
	free(*e);
	*e = NULL;
}
