/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text/redact.h"
#include "profile/inject/writer.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
	STRINGS = 1 << 17, /* slots; a quarter stays free */
	SPINS = 64,	   /* attempts to take the lock before the CPU is yielded */
	TURNS = 20000, /* yields before giving up; a lock that is still held then will never be free: a signal
			  handler interrupted its holder, or the holder's thread is gone */
	KEPT_SHARE = 4, /* at most one in this many segments may be of kind RING_KEPT */
	ZEROES = 4 << 10,
};

/* A string that is already in the file. */
struct writer_string {
	uint32_t hash, id; /* id 0: free */
	uint64_t at;	   /* offset in the file */
};

uint64_t writer_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool take_lock(struct writer *w)
{
	for (unsigned turn = 0; turn < TURNS; turn++) {
		for (unsigned spin = 0; spin < SPINS; spin++)
			if (!__atomic_load_n(&w->lock, __ATOMIC_RELAXED) &&
			    !__atomic_exchange_n(&w->lock, 1, __ATOMIC_ACQUIRE))
				return true;
		sched_yield();
	}
	return false;
}

static void drop_lock(struct writer *w)
{
	__atomic_store_n(&w->lock, 0, __ATOMIC_RELEASE);
}

/* Growing a file beyond RLIMIT_FSIZE raises a signal that ends the process, so the limit is checked first. */
static bool may_grow(uint64_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

/* Fills with zeroes, for file systems that cannot reserve space. */
static int fill(int fd, uint64_t at, uint64_t size)
{
	static const char zeroes[ZEROES];

	while (size) {
		ssize_t n = pwrite(fd, zeroes, size < ZEROES ? size : ZEROES, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? errno : ENOSPC;
		at += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return 0;
}

/* Reserves disk space for these bytes of the file: access to a page without space would end the process
 * (SIGBUS). */
static int reserve(int fd, uint64_t at, uint64_t size)
{
	if (!may_grow(at + size))
		return EFBIG;
	while (fallocate(fd, 0, (off_t)at, (off_t)size)) {
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			return fill(fd, at, size);
		if (errno != EINTR)
			return errno;
	}
	return 0;
}

static int reserve_segment(struct writer *w, uint64_t at)
{
	int saved = errno, fd = open(w->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), code;

	code = fd < 0 ? errno : reserve(fd, at, RING_SEGMENT);
	if (fd >= 0)
		close(fd);
	errno = saved; /* restores the program's errno */
	return code;
}

static uint64_t segment_at(const struct writer *w, const struct ring_segment *s)
{
	return w->header->segments_at + (uint64_t)(s - w->table) * RING_SEGMENT;
}

static void stop(struct writer *w, int code)
{
	w->header->stop = code == ENOSPC || code == EDQUOT ? RING_STOP_DISK_FULL
			  : code == EFBIG		   ? RING_STOP_FILE_LIMIT
							   : RING_STOP_OTHER;
}

static struct ring_segment *oldest_events(const struct writer *w)
{
	struct ring_segment *oldest = NULL;

	for (uint32_t i = 0; i < w->header->segments; i++)
		if (w->table[i].kind == RING_EVENTS && (!oldest || w->table[i].sequence < oldest->sequence))
			oldest = &w->table[i];
	return oldest;
}

/* A segment to fill: a new one or, at the limit, the one with the oldest events. */
static struct ring_segment *next_segment(struct writer *w, enum ring_segment_kind kind)
{
	struct ring_header *h = w->header;
	struct ring_segment *s = NULL;
	int code = 0;

	if (kind == RING_KEPT && w->kept_count >= h->segments_max / KEPT_SHARE)
		return NULL;
	if (h->segments < h->segments_max && !h->stop) {
		s = &w->table[h->segments];
		code = reserve_segment(w, segment_at(w, s));
		if (code)
			stop(w, code);
		else
			__atomic_store_n(&h->segments, h->segments + 1, __ATOMIC_RELEASE);
	}
	if (!s || code) {
		s = oldest_events(w);
		/* Long-lived records must not take the only segment that holds events. */
		if (!s || (kind == RING_KEPT && s == w->events))
			return NULL;
		h->overwritten += s->records;
		__atomic_store_n(&s->kind, RING_FREE, __ATOMIC_RELEASE);
	}
	s->records = 0;
	s->used = 0;
	s->sequence = ++w->sequence;
	__atomic_store_n(&s->kind, kind, __ATOMIC_RELEASE);
	w->kept_count += kind == RING_KEPT;
	return s;
}

/* Needs the lock. Returns where the record was written; NULL: there is no room. */
static uint8_t *put(struct writer *w, const void *head, size_t head_size, const void *tail, size_t tail_size)
{
	const struct ring_record *r = head;
	bool kept = ring_is_lasting(r->type);
	struct ring_segment **filled = kept ? &w->kept : &w->events;
	struct ring_segment *s = *filled;
	uint8_t *at;

	if (!s || s->used + r->size > RING_SEGMENT)
		*filled = s = next_segment(w, kept ? RING_KEPT : RING_EVENTS);
	if (!s)
		return NULL;
	at = w->base + segment_at(w, s) + s->used;
	memcpy(at, head, head_size);
	if (tail_size)
		memcpy(at + head_size, tail, tail_size);
	if (head_size + tail_size < r->size)
		memset(at + head_size + tail_size, 0, r->size - head_size - tail_size);
	s->records++;
	__atomic_store_n(&s->used, s->used + r->size, __ATOMIC_RELEASE);
	w->header->records++;
	return at;
}

void writer_add(struct writer *w, const void *record)
{
	const struct ring_record *r = record;

	if (!w->open)
		return;
	if (!take_lock(w)) {
		__atomic_fetch_add(&w->header->dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	if (w->open && !put(w, record, r->size, NULL, 0))
		w->header->dropped++;
	drop_lock(w);
}

static uint32_t hash_of(const char *text, size_t size)
{
	uint64_t hash = 1469598103934665603ull;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)text[i]) * 1099511628211ull;
	return (uint32_t)(hash ^ hash >> 32);
}

static bool is_same(const struct writer *w, const struct writer_string *slot, uint32_t hash, const char *text,
		    size_t size)
{
	const char *known = (const char *)(w->base + slot->at);

	return slot->hash == hash && !strncmp(known, text, size) && !known[size];
}

/* Needs the lock. */
static uint32_t intern(struct writer *w, const char *text, size_t size)
{
	uint32_t hash = hash_of(text, size), i = hash % STRINGS;
	struct ring_string head = {
		.head = {.type = RING_STRING, .size = (uint16_t)((sizeof(head) + size + 8) & ~7u)}};
	uint8_t *at;

	for (; w->strings[i].id; i = (i + 1) % STRINGS)
		if (is_same(w, &w->strings[i], hash, text, size))
			return w->strings[i].id;
	head.head.name = w->string_count + 1;
	at = w->string_count < RING_STRINGS ? put(w, &head, sizeof(head), text, size) : NULL;
	if (!at) {
		w->header->strings_lost++;
		return 0;
	}
	w->strings[i] = (struct writer_string){
		.hash = hash, .id = ++w->string_count, .at = (uint64_t)(at + sizeof(head) - w->base)};
	return w->string_count;
}

uint32_t writer_string(struct writer *w, const char *text)
{
	size_t size;
	uint32_t id = 0;

	if (!w->open || !text || !*text)
		return 0;
	if (!take_lock(w)) {
		__atomic_fetch_add(&w->header->strings_lost, 1, __ATOMIC_RELAXED);
		return 0;
	}
	size = strnlen(text, RING_STRING_MAX);
	if (w->open)
		id = intern(w, text, size);
	drop_lock(w);
	return id;
}

void writer_note(struct writer *w, const char *text)
{
	if (w->open)
		snprintf(w->header->note, sizeof(w->header->note), "%s", text);
}

/* An integer in an environment variable that launchers set; -1: none. */
static int32_t number_of(const char *const *names)
{
	for (; *names; names++) {
		const char *text = getenv(*names);
		int64_t value = 0;

		for (; text && *text >= '0' && *text <= '9' && value < INT32_MAX / 10; text++)
			value = value * 10 + (*text - '0');
		if (text && !*text && *getenv(*names))
			return (int32_t)value;
	}
	return -1;
}

/* Writes the words of our command line without secrets, separated by NUL. Returns the number of bytes. */
static uint32_t shown_command(char *out, size_t room)
{
	char raw[RING_COMMAND + 1];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, raw, RING_COMMAND) : 0;
	struct redact state = {0};
	size_t size = 0;

	if (fd >= 0)
		close(fd);
	raw[n > 0 ? n : 0] = '\0';
	for (ssize_t at = 0; at < n && size < room; at += (ssize_t)strlen(raw + at) + 1) {
		size_t all = redact_word(&state, out + size, room - size, raw + at);

		size += all < room - size ? all + 1 : room - size;
	}
	return (uint32_t)size;
}

static void describe(struct ring_header *h)
{
	static const char *const rank[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
	static const char *const local[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
					    NULL};
	static const char *const world[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS",
					    NULL};

	h->command_size = shown_command(h->command, sizeof(h->command));
	h->pid = (uint32_t)getpid();
	h->parent = (uint32_t)getppid();
	h->rank = number_of(rank);
	h->local_rank = number_of(local);
	h->world = number_of(world);
	h->started_ns = writer_now_ns();
}

static int make_file(char path[4096], const char *dir)
{
	int fd = -1;

	for (unsigned i = 1; i < 1000 && fd < 0; i++) {
		int size = i < 2 ? snprintf(path, 4096, "%s/%d.ring", dir, (int)getpid())
				 : snprintf(path, 4096, "%s/%d-%u.ring", dir, (int)getpid(), i);

		if (size >= 4096)
			return -1;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			return -1;
	}
	return fd;
}

static void *mapped(size_t size, int flags, int fd)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static bool map_file(struct writer *w, const char *dir, uint32_t segments)
{
	int fd = make_file(w->path, dir);

	if (fd < 0)
		return false;
	w->size = ring_segments_at(segments) + (uint64_t)segments * RING_SEGMENT;
	if (!reserve(fd, 0, ring_segments_at(segments)))
		w->base = mapped(w->size, MAP_SHARED, fd);
	close(fd);
	w->strings = mapped(STRINGS * sizeof(*w->strings), MAP_PRIVATE | MAP_ANONYMOUS, -1);
	return w->base && w->strings;
}

bool writer_open(struct writer *w, const char *dir, uint64_t limit_bytes)
{
	uint64_t segments = limit_bytes / RING_SEGMENT;
	int saved = errno;
	bool made;

	*w = (struct writer){0};
	if (segments < RING_SEGMENTS_MIN)
		segments = RING_SEGMENTS_MIN;
	if (segments > RING_SEGMENTS_MAX)
		segments = RING_SEGMENTS_MAX;
	made = map_file(w, dir, (uint32_t)segments);
	errno = saved;
	if (!made) {
		writer_forget(w);
		return false;
	}
	w->header = (struct ring_header *)w->base;
	w->table = (struct ring_segment *)(w->base + ring_table_at());
	*w->header = (struct ring_header){.version = RING_VERSION,
					  .header_size = sizeof(struct ring_header),
					  .segment_size = RING_SEGMENT,
					  .segments_max = (uint32_t)segments,
					  .segments_at = ring_segments_at((uint32_t)segments)};
	describe(w->header);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(w->header->magic, RING_MAGIC, sizeof(w->header->magic));
	w->open = true;
	return true;
}

void writer_forget(struct writer *w)
{
	if (w->base)
		munmap(w->base, w->size);
	if (w->strings)
		munmap(w->strings, STRINGS * sizeof(*w->strings));
	*w = (struct writer){0};
}

void writer_close(struct writer *w)
{
	if (!w->open || !take_lock(w))
		return;
	w->header->ended_ns = writer_now_ns();
	w->header->state = RING_CLOSED;
	w->open = false;
	drop_lock(w);
}
