/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is written completely or not at all: after a short write the file is cut back to its last valid
 * size, so a full disk leaves a readable journal. A line without its newline is torn and ignored.
 */
#include "journal/journal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "journal/file/compressed.h"
#include "journal/file/open_file.h"

#define X(name, text) text,
static const char *const type_names[] = {JOURNAL_TYPES(X)};
#undef X

struct journal {
	int fd;
	const struct clock *clock;
	uint64_t next; /* sequence number of the next line */
	off_t size;    /* bytes of complete lines */
	char path[PATH_MAX];
};

const char *journal_type_name(enum journal_type type)
{
	return type_names[type];
}

int journal_type_from_name(const char *name, enum journal_type *out)
{
	for (unsigned i = 0; i < JOURNAL_TYPE_COUNT; i++)
		if (!strcmp(name, type_names[i])) {
			*out = (enum journal_type)i;
			return 1;
		}
	return 0;
}

/* Parses one line, given without its newline. */
static enum status parse(const char *line, size_t size, enum journal_type *type, uint64_t *sequence,
			 uint64_t *t_ns, json_t **body, struct error *err)
{
	json_error_t parse_error;
	json_t *object = json_loadb(line, size, JSON_REJECT_DUPLICATES, &parse_error);
	const json_t *n, *t, *name;
	enum status st = STATUS_OK;

	if (!object)
		return error_set(err, STATUS_BAD_INPUT, "a journal line is not JSON: %s at byte %d",
				 parse_error.text, parse_error.position);
	n = json_object_get(object, "n");
	t = json_object_get(object, "t");
	name = json_object_get(object, "type");
	if (!json_is_integer(n) || json_integer_value(n) < 0 || !json_is_integer(t) ||
	    json_integer_value(t) < 0 || !json_is_string(name)) {
		st = error_set(err, STATUS_BAD_INPUT, "a journal line has no valid n, t or type");
		goto out;
	}
	if (!journal_type_from_name(json_string_value(name), type)) {
		st = error_set(err, STATUS_BAD_INPUT, "a journal line has the unknown type \"%.40s\"",
			       json_string_value(name));
		goto out;
	}
	*sequence = (uint64_t)json_integer_value(n);
	*t_ns = (uint64_t)json_integer_value(t);
	json_object_del(object, "n");
	json_object_del(object, "t");
	json_object_del(object, "type");
	*body = json_incref(object);
out:
	json_decref(object);
	return st;
}

enum status journal_parse_line(const char *line, size_t size, enum journal_type *type, uint64_t *t_ns,
			       json_t **body, struct error *err)
{
	uint64_t sequence;

	*body = NULL;
	return parse(line, size, type, &sequence, t_ns, body, err);
}

/* Reads lines of at most JOURNAL_LINE_MAX bytes from a file. */
struct reader {
	int fd;
	struct compressed_journal *packed; /* NULL: the file is not compressed */
	char *data;
	size_t size, room, at; /* buffered bytes, buffer size, start of the next line */
	bool end;
};

/* Reads more bytes; *got 0: the end. */
static enum status reader_take(struct reader *r, const char *path, size_t *got, struct error *err)
{
	ssize_t bytes;

	if (r->packed)
		return compressed_journal_read(r->packed, r->data + r->size, r->room - r->size, got, err);
	do
		bytes = read(r->fd, r->data + r->size, r->room - r->size);
	while (bytes < 0 && errno == EINTR);
	if (bytes < 0)
		return error_errno(err, errno, "cannot read %s", path);
	*got = (size_t)bytes;
	return STATUS_OK;
}

/* Moves the rest to the front of the buffer and reads more after it. */
static enum status reader_fill(struct reader *r, const char *path, struct error *err)
{
	enum status st;
	size_t got;

	if (r->at) { /* an empty reader may have no buffer yet */
		memmove(r->data, r->data + r->at, r->size - r->at);
		r->size -= r->at;
		r->at = 0;
	}
	if (r->size == r->room) {
		size_t room = r->room ? 2 * r->room : 1 << 16;
		char *grown = realloc(r->data, room);

		if (!grown)
			return error_errno(err, ENOMEM, "%s: no memory for a line of %zu bytes", path,
					   r->size);
		r->data = grown;
		r->room = room;
	}
	st = reader_take(r, path, &got, err);
	if (st)
		return st;
	r->size += got;
	r->end = got == 0;
	return STATUS_OK;
}

/* The next complete line, borrowed until the next call. *line NULL: the end, a torn line, or a line that is
 * too long. */
static enum status reader_line(struct reader *r, const char *path, const char **line, size_t *size,
			       struct error *err)
{
	size_t seen = 0;

	*line = NULL;
	for (;;) {
		const char *start = r->data ? r->data + r->at : NULL;
		const char *newline = start ? memchr(start + seen, '\n', r->size - r->at - seen) : NULL;
		enum status st;

		if (newline) {
			*line = start;
			*size = (size_t)(newline - start);
			r->at += *size + 1;
			return STATUS_OK;
		}
		seen = r->size - r->at;
		if (r->end || seen > JOURNAL_LINE_MAX)
			return STATUS_OK;
		st = reader_fill(r, path, err);
		if (st)
			return st;
	}
}

/* Visits the valid lines from the start of `fd`. *good: their bytes; *next: the sequence number after them;
 * *held: bytes that were read after them. */
static enum status read_lines(int fd, struct compressed_journal *packed, const char *path,
			      journal_visit *visit, void *arg, off_t *good, uint64_t *next, uint64_t *held,
			      struct error *err)
{
	struct reader r = {.fd = fd, .packed = packed};
	uint64_t unused = 0; /* bytes of a line that was read and is not valid */
	enum status st;

	*good = 0;
	*next = 0;
	for (;;) {
		const char *line;
		size_t size;
		enum journal_type type;
		uint64_t sequence, t_ns;
		json_t *body = NULL;
		int stop;

		st = reader_line(&r, path, &line, &size, err);
		if (st || !line)
			break;
		unused = size + 1;
		if (parse(line, size, &type, &sequence, &t_ns, &body, NULL))
			break;
		if (sequence != *next) { /* a line is missing or repeated, so the rest is not valid */
			json_decref(body);
			break;
		}
		*next = sequence + 1;
		*good += (off_t)size + 1;
		unused = 0;
		stop = visit ? visit(arg, type, t_ns, body) : 0;
		json_decref(body);
		if (stop)
			break;
	}
	*held = r.size - r.at + unused;
	free(r.data);
	return st;
}

static enum status journal_path(char path[PATH_MAX], const char *dir, const char *name, struct error *err)
{
	if (snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%.200s..: the path of the run directory is too long",
				 dir);
	return STATUS_OK;
}

/* Opens only a regular file: a FIFO or a device could block, or never end. */
static enum status open_journal(int *fd, const char *path, int flags, const char *what, struct error *err)
{
	struct stat info;
	int errnum;

	*fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0644);
	errnum = errno;
	if (*fd < 0 && errnum != ENXIO)
		return error_errno(err, errnum, "%s: %s", path, what);
	if (*fd >= 0 && !fstat(*fd, &info) && S_ISREG(info.st_mode))
		return STATUS_OK;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return error_set(err, STATUS_BAD_INPUT, "%s: %s: it is not a regular file", path, what);
}

static bool holds(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) && !access(path, F_OK);
}

bool journal_exists(const char *dir)
{
	return holds(dir, JOURNAL_FILE) || holds(dir, JOURNAL_COMPRESSED);
}

/* Finds a run directory directly in `dir`; false: there is none. */
static bool run_within(const char *dir, char *out, size_t size)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	bool found = false;

	while (d && !found && (entry = readdir(d)))
		found = entry->d_name[0] != '.' &&
			snprintf(out, size, "%s/%s", dir, entry->d_name) < (int)size && journal_exists(out);
	if (d)
		closedir(d);
	return found;
}

enum status journal_lacking(const char *dir, int errnum, struct error *err)
{
	char run[PATH_MAX];
	struct stat info;
	size_t n = strlen(dir);

	if (errnum != ENOENT && errnum != ENOTDIR)
		return error_errno(err, errnum, "%s/" JOURNAL_FILE ": cannot be opened", dir);
	if (stat(dir, &info))
		return error_errno(err, errno, "%s", dir);
	if (!S_ISDIR(info.st_mode))
		return error_set(err, STATUS_UNAVAILABLE, "%s is a file; give the directory of a run%s", dir,
				 n > 8 && !strcmp(dir + n - 8, ".tar.zst")
					 ? ": unpack it first, for example with tar -xf"
					 : "");
	if (run_within(dir, run, sizeof(run)))
		return error_set(err, STATUS_UNAVAILABLE,
				 "%s is not a run directory: it has no " JOURNAL_FILE
				 ", but it contains a run: give %s",
				 dir, run);
	return error_set(err, STATUS_UNAVAILABLE, "%s is not a run directory: it has no " JOURNAL_FILE, dir);
}

/* An open journal, compressed or not. */
struct source {
	char path[PATH_MAX];
	int fd;
	struct compressed_journal *packed;
};

static void source_close(struct source *s)
{
	compressed_journal_close(&s->packed);
	if (s->fd >= 0)
		close(s->fd);
}

static enum status source_open(struct source *s, const char *dir, struct error *err)
{
	const bool packed = !holds(dir, JOURNAL_FILE) && holds(dir, JOURNAL_COMPRESSED);
	enum status st = journal_path(s->path, dir, packed ? JOURNAL_COMPRESSED : JOURNAL_FILE, err);

	s->fd = -1;
	s->packed = NULL;
	if (st)
		return st;
	if (access(s->path, R_OK))
		return journal_lacking(dir, errno, err);
	st = open_journal(&s->fd, s->path, O_RDONLY, "cannot be opened", err);
	if (!st && packed)
		st = compressed_journal_open(&s->packed, s->fd, err);
	if (st)
		source_close(s);
	return st;
}

enum status journal_read(const char *dir, journal_visit *visit, void *arg, uint64_t *cut, struct error *err)
{
	struct source s;
	struct stat info;
	uint64_t next, held;
	off_t good;
	enum status st = source_open(&s, dir, err);

	if (st)
		return st;
	st = read_lines(s.fd, s.packed, s.path, visit, arg, &good, &next, &held, err);
	if (!st && fstat(s.fd, &info))
		st = error_errno(err, errno, "cannot read the size of %s", s.path);
	if (!st && s.packed) {
		st = compressed_journal_rest(s.packed, cut, err);
		*cut += held;
	} else if (!st)
		*cut = info.st_size > good ? (uint64_t)(info.st_size - good) : 0;
	source_close(&s);
	return st;
}

static enum status next_piece(void *arg, void *to, size_t room, size_t *got, struct error *err)
{
	return compressed_journal_read(arg, to, room, got, err);
}

enum status journal_sha256(char hex[65], const char *dir, struct error *err)
{
	struct source s;
	enum status st = source_open(&s, dir, err);

	if (st)
		return st;
	st = s.packed ? file_sha256_pieces(hex, next_piece, s.packed, err) : file_sha256_of(hex, s.path, err);
	source_close(&s);
	return st;
}

/* Appends the part that is about to be cut off to the file JOURNAL_CUT next to the journal. */
static enum status keep_cut(const struct journal *j, struct error *err)
{
	char path[PATH_MAX + 8];
	struct stat info;
	enum status st;
	int fd;

	if (fstat(j->fd, &info))
		return error_errno(err, errno, "cannot read the size of %s", j->path);
	if (info.st_size <= j->size)
		return STATUS_OK;
	snprintf(path, sizeof(path), "%s" JOURNAL_CUT, j->path);
	st = open_journal(&fd, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, "cannot be created", err);
	if (st)
		return st;
	st = open_file_copy(j->fd, j->size, info.st_size, fd, path, err);
	close(fd);
	return st;
}

/* Prepares to append after the last valid line, and cuts off the rest. */
static enum status go_on(struct journal *j, struct error *err)
{
	uint64_t held;
	int fd;
	enum status st = open_journal(&fd, j->path, O_RDONLY, "cannot be read to continue it", err);

	if (st)
		return st;
	st = read_lines(fd, NULL, j->path, NULL, NULL, &j->size, &j->next, &held, err);
	close(fd);
	if (!st)
		st = keep_cut(j, err);
	if (!st && ftruncate(j->fd, j->size))
		st = error_errno(err, errno, "cannot cut off the torn end of %s", j->path);
	return st;
}

enum status journal_create(struct journal **out, const char *dir, bool append, const struct clock *clock,
			   struct error *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	struct stat info;
	enum status st;

	*out = NULL;
	if (!j)
		return error_errno(err, ENOMEM, "no memory to open a journal in %s", dir);
	*j = (struct journal){.fd = -1, .clock = clock};
	st = file_make_dir(dir, err);
	if (!st)
		st = journal_path(j->path, dir, JOURNAL_FILE, err);
	if (!st && holds(dir, JOURNAL_COMPRESSED))
		st = error_set(err, STATUS_BAD_INPUT,
			       "%s.zst: a compressed journal is read only; unpack it with zstd -d --rm",
			       j->path);
	if (st)
		goto out;
	if (!append && !lstat(j->path, &info)) {
		st = error_set(
			err, STATUS_BAD_INPUT,
			"%s: there is a run already; continue it with --resume %s or choose another directory with --out",
			j->path, dir);
		goto out;
	}
	st = open_journal(&j->fd, j->path, O_RDWR | O_CREAT | O_APPEND | (append ? 0 : O_EXCL),
			  "cannot be created", err);
	if (st)
		goto out;
	if (flock(j->fd, LOCK_EX | LOCK_NB)) {
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_BUSY, "%s: another run is writing it",
				     j->path);
		goto out;
	}
	if (append)
		st = go_on(j, err);
out:
	if (st)
		journal_close(&j);
	*out = j;
	return st;
}

static enum status write_all(struct journal *j, const char *line, size_t size, struct error *err)
{
	for (size_t done = 0; done < size;) {
		ssize_t put = write(j->fd, line + done, size - done);
		int errnum = errno;

		if (put < 0 && errnum == EINTR)
			continue;
		if (put <= 0) {
			/* If this fails, the reader ignores the torn line. */
			if (done && ftruncate(j->fd, j->size))
				errnum = errno;
			if (errnum == EFBIG || errnum == EDQUOT)
				return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_DISK_FULL,
						       "%s: the file cannot grow: %s", j->path,
						       strerror(errnum));
			return error_errno(err, put ? errnum : ENOSPC, "cannot write %s", j->path);
		}
		done += (size_t)put;
	}
	j->size += (off_t)size;
	return STATUS_OK;
}

static enum status sync_file(struct journal *j, struct error *err)
{
	/* EINVAL, EROFS: a special file that cannot be synced. */
	if (fsync(j->fd) && errno != EINVAL && errno != EROFS)
		return error_errno(err, errno, "cannot sync %s to the disk", j->path);
	return STATUS_OK;
}

enum status journal_append(struct journal *j, enum journal_type type, const json_t *body, struct error *err)
{
	json_t *line = json_pack("{s:I, s:I, s:s}", "n", (json_int_t)j->next, "t",
				 (json_int_t)clock_now_ns(j->clock), "type", journal_type_name(type));
	char *text = NULL;
	size_t size;
	enum status st;

	if (json_object_get(body, "n") || json_object_get(body, "t") || json_object_get(body, "type")) {
		st = error_set(err, STATUS_BUG, "%s: a body of type %s contains n, t or type", j->path,
			       journal_type_name(type));
		goto out;
	}
	if (!line || (body && json_object_update(line, (json_t *)body))) {
		st = error_errno(err, ENOMEM, "%s: no memory for a line of type %s", j->path,
				 journal_type_name(type));
		goto out;
	}
	text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(15));
	size = text ? strlen(text) : 0;
	if (!text || size >= JOURNAL_LINE_MAX) {
		st = error_set(err, STATUS_BUG,
			       "%s: a line of type %s cannot be written as JSON, or is too long", j->path,
			       journal_type_name(type));
		goto out;
	}
	text[size] = '\n'; /* instead of its NUL */
	st = write_all(j, text, size + 1, err);
	if (st)
		goto out;
	j->next++;
	if (type == JOURNAL_END || type == JOURNAL_CLOSE)
		st = sync_file(j, err);
	if (!st)
		st = open_file_check(j->fd, j->size, j->path, err);
out:
	free(text);
	json_decref(line);
	return st;
}

void journal_close(struct journal **j)
{
	if (!*j)
		return;
	if ((*j)->fd >= 0) {
		sync_file(*j, NULL);
		close((*j)->fd);
	}
	free(*j);
	*j = NULL;
}
