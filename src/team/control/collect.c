/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the files of all ranks to rank 0. Rank 0 asks with COLLECT. Each rank sends FILE, DATA .., and
 * finally SENT. Rank 0 answers TAKEN. A rank that is lost meanwhile is named and not waited for. This also
 * works after the team has ended, because the measurements of the other ranks are still valid.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "journal/journal.h"
#include "journal/file/rank_dir.h"
#include "team/control/collect_receive.h"
#include "team/control/internal.h"

enum {
	WINDOW = 8 * WIRE_CHUNK, /* most bytes queued for sending */
	GRACE_MS = 5000,	 /* so that rank 0's own limit expires first */
};

struct sender { /* rank 0's view of one other rank */
	struct collect_in in;
	bool done;     /* it sent SENT, is gone, or sent invalid data */
	char why[200]; /* why its files are not whole; "": they are */
};

struct collect {
	struct sender *of; /* by rank */
	unsigned size;
};

static bool never(const struct control *c)
{
	(void)c;
	return false;
}

static bool zero_gone(const struct control *c)
{
	return !c->peer[0].here;
}

/* Handles frames until ready(c), gone(c) or the deadline. Unlike control_wait it goes on after the end of the
 * team. */
static bool look_until(struct control *c, bool (*ready)(const struct control *),
		       bool (*gone)(const struct control *), uint64_t deadline_ns)
{
	while (!ready(c) && !gone(c) && !control_asked(c) && clock_now_ns(c->clock) < deadline_ns)
		control_poll(c, CONTROL_PORTION_MS / 10);
	return ready(c);
}

static void end_sender(struct sender *s, const char *why)
{
	if (s->done)
		return;
	s->done = true;
	if (!collect_close(&s->in) && !*why)
		why = "its last file is incomplete";
	if (!(s->in.taken & 1) && !*why)
		why = "it sent no " JOURNAL_FILE;
	text_copy(s->why, sizeof(s->why), why);
}

static const char *text_said(const json_t *said)
{
	const char *text = json_string_value(json_object_get(said, "text"));

	return text ? text : "it gave no reason";
}

void collect_lost(struct control *c, const struct peer *p, const char *why)
{
	end_sender(&c->collect->of[p->rank], why);
}

void collect_frame(struct control *c, const struct peer *p, const struct wire_frame *f)
{
	struct sender *s = &c->collect->of[p->rank];
	struct error err = {0};
	json_t *said;

	if (s->done) /* refused already: ignore the rest */
		return;
	if (f->kind == WIRE_FILE)
		collect_file(&s->in, f->payload, f->size, &err);
	else if (f->kind == WIRE_DATA)
		collect_data(&s->in, f->payload, f->size, &err);
	else {
		said = json_loadb((const char *)f->payload, f->size, JSON_REJECT_DUPLICATES, NULL);
		text_copy(err.text, sizeof(err.text), text_said(said));
		json_decref(said);
		end_sender(s, err.text);
	}
	if (err.status)
		end_sender(s, err.text);
}

static bool all_done(const struct control *c)
{
	for (unsigned i = 1; i < c->peers; i++)
		if (!c->collect->of[i].done)
			return false;
	return true;
}

static enum status prepare(struct control *c, struct collect *all, const char *dir, struct error *err)
{
	*all = (struct collect){.of = calloc(c->size, sizeof(*all->of)), .size = c->size};
	if (!all->of)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the files of %u ranks", c->size);
	for (unsigned r = 1; r < c->size; r++) {
		struct sender *s = &all->of[r];

		rank_dir_path(s->in.dir, sizeof(s->in.dir), dir, c->shape.node[c->shape.rank[r].node].shown,
			      r);
		collect_forget(&s->in);
		if (!c->peer[r].here)
			end_sender(s, "it was lost earlier");
	}
	return STATUS_OK;
}

static void name_missing(const struct control *c, const struct collect *all, struct text *missing)
{
	char who[96];

	for (unsigned r = 1; r < c->size; r++) {
		const struct sender *s = &all->of[r];

		if (!*s->why)
			continue;
		control_rank_text(c, r, who, sizeof(who));
		text_addf(missing, "%sno complete files from %s: %s (%llu bytes received)",
			  missing->size ? "; " : "", who, s->why, (unsigned long long)s->in.bytes);
	}
}

static enum status take_all(struct control *c, const char *dir, unsigned limit_ms, struct text *missing,
			    struct error *err)
{
	struct collect all;
	enum status st = prepare(c, &all, dir, err);
	char late[64];

	if (st)
		return st;
	c->collect = &all;
	control_send_json(c, NULL, WIRE_COLLECT, json_object());
	look_until(c, all_done, never, control_deadline(c, limit_ms));
	snprintf(late, sizeof(late), "it sent no more within %.1f s", limit_ms / 1e3);
	for (unsigned r = 1; r < c->size; r++) {
		end_sender(&all.of[r], late);
		control_send_json(c, &c->peer[r], WIRE_TAKEN, json_pack("{s:s}", "text", all.of[r].why));
	}
	name_missing(c, &all, missing);
	c->collect = NULL;
	free(all.of);
	if (control_asked(c))
		st = error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request");
	return st;
}

static bool zero_spoke(const struct control *c)
{
	return c->peer[0].first;
}

static bool window_open(const struct control *c)
{
	return c->peer[0].ch.out_size < WINDOW;
}

/* Waits for one kind of frame from rank 0. Other frames belong to steps that no longer count. */
static enum status hear(struct control *c, enum wire_kind wanted, const char *what, uint64_t deadline_ns,
			json_t **said, struct error *err)
{
	enum wire_kind kind = WIRE_KIND_COUNT;

	*said = NULL;
	while (look_until(c, zero_spoke, zero_gone, deadline_ns)) {
		*said = control_held_json(&c->peer[0], &kind);
		if (kind == wanted)
			return STATUS_OK;
		json_decref(*said);
		*said = NULL;
	}
	if (zero_gone(c))
		what = "is gone";
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST,
			       "rank 0 %s: the files of rank %u stay in its own run directory", what,
			       c->rank);
}

/* Sends exactly the announced size. If the file shrinks meanwhile, it is reported as incomplete. */
static enum status send_bytes(struct control *c, int fd, const char *path, uint64_t left,
			      uint64_t deadline_ns, struct error *err)
{
	char chunk[WIRE_CHUNK];

	while (left) {
		ssize_t n = read(fd, chunk, left < sizeof(chunk) ? left : sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_set(err, STATUS_UNAVAILABLE, "%s is shorter than its announced size",
					 path);
		if (!look_until(c, window_open, zero_gone, deadline_ns) || zero_gone(c))
			return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST,
					       "rank 0 does not read the rest of %s", path);
		control_send(c, &c->peer[0], WIRE_DATA, chunk, (size_t)n);
		left -= (uint64_t)n;
	}
	return STATUS_OK;
}

static enum status send_file(struct control *c, const char *dir, const struct collect_row *row,
			     uint64_t deadline_ns, struct error *err)
{
	char path[COLLECT_PATH + 32];
	enum status st = STATUS_OK;
	struct stat info;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, row->name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return STATUS_OK; /* no such file: rank 0 notices that */
	if (fstat(fd, &info) || !S_ISREG(info.st_mode))
		st = error_set(err, STATUS_BAD_INPUT, "%s is not a regular file", row->name);
	else if ((uint64_t)info.st_size > row->most)
		st = error_set(err, STATUS_BAD_INPUT, "%s has %lld bytes; the limit is %llu", row->name,
			       (long long)info.st_size, (unsigned long long)row->most);
	if (!st) {
		control_send_json(
			c, &c->peer[0], WIRE_FILE,
			json_pack("{s:s,s:I}", "name", row->name, "size", (json_int_t)info.st_size));
		st = send_bytes(c, fd, row->name, (uint64_t)info.st_size, deadline_ns, err);
	}
	close(fd);
	return st;
}

static enum status send_all(struct control *c, const char *dir, unsigned limit_ms, struct error *err)
{
	uint64_t deadline = control_deadline(c, limit_ms + GRACE_MS);
	struct error why = {0};
	json_t *said;
	enum status st = hear(c, WIRE_COLLECT, "did not ask", deadline, &said, err);

	json_decref(said);
	if (st)
		return st;
	for (unsigned i = 0; i < COLLECT_FILES && !why.status; i++)
		send_file(c, dir, &collect_rows[i], deadline, &why);
	control_send_json(c, &c->peer[0], WIRE_SENT, json_pack("{s:s}", "text", why.text));
	st = hear(c, WIRE_TAKEN, "did not answer", deadline, &said, err);
	if (!st && *text_said(said))
		st = error_set(err, STATUS_UNAVAILABLE, "rank 0 did not take the files of rank %u: %.200s",
			       c->rank, text_said(said));
	json_decref(said);
	return st;
}

enum status control_collect(struct control *c, const char *dir, unsigned limit_ms, struct text *missing,
			    struct error *err)
{
	if (!c || !c->shape.rank)
		return STATUS_OK;
	return c->rank ? send_all(c, dir, limit_ms, err) : take_all(c, dir, limit_ms, missing, err);
}

void control_await_zero(struct control *c, unsigned limit_ms)
{
	if (c && c->rank && c->peers)
		look_until(c, never, zero_gone, control_deadline(c, limit_ms));
}
