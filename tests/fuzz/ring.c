/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring file of any bytes becomes a timeline whose indices hold, and all that is made of one. The input is
 * the file without its gaps: head and table, then what each segment holds, one behind the other.
 */
#include "fuzz.h"
#include <fcntl.h>
#include <unistd.h>
#include "core/text/text.h"
#include "profile/inject/ring.h"
#include "profile/page/page.h"
#include "profile/timeline/timeline.h"

static void check(const struct timeline *t)
{
	uint64_t before = 0;
	size_t tracked = 0;

	for (size_t i = 0; i < t->events; i++) {
		const struct timeline_event *e = &t->event[i];

		FUZZ_CHECK(e->start_ns >= before && e->end_ns >= e->start_ns);
		before = e->start_ns;
		FUZZ_CHECK(e->process < t->processes && e->name < t->names && e->kind < TIMELINE_KIND_COUNT);
		FUZZ_CHECK(e->track == TIMELINE_NONE || e->track < t->tracks);
		FUZZ_CHECK(e->kind != TIMELINE_KERNEL || e->detail < t->kernels);
		FUZZ_CHECK((e->kind != TIMELINE_COPY && e->kind != TIMELINE_SET) || e->detail < t->copies);
		if (e->kind == TIMELINE_RANGE || e->kind == TIMELINE_MARK) {
			FUZZ_CHECK(e->detail < t->ranges);
			FUZZ_CHECK(t->range[e->detail].values <= t->values);
		}
		FUZZ_CHECK(!timeline_call(t, e) || timeline_call(t, e)->correlation == e->correlation);
	}
	for (size_t i = 0; i < t->tracks; i++)
		tracked += t->track[i].count;
	FUZZ_CHECK(tracked <= t->events);
}

/* States add up to the whole, whatever the records say. */
static void check_breakdown(const struct breakdown *b)
{
	for (size_t i = 0; i < b->devices; i++) {
		const struct breakdown_device *d = &b->device[i];
		uint64_t sum = 0;

		for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++) {
			uint64_t of_windows = 0;

			for (size_t w = 0; d->window_ns && w < d->windows; w++)
				of_windows += d->window_ns[w][k];
			FUZZ_CHECK(!d->window_ns || of_windows == d->state_ns[k]);
			sum += d->state_ns[k];
		}
		FUZZ_CHECK(sum == d->span_ns);
		FUZZ_CHECK(d->hidden_ns <= d->communication_ns && d->hidden_ns <= d->compute_ns);
	}
}

static void check_found(const struct findings *f)
{
	const struct windows *steps = steps_steady(&f->steps);

	check_breakdown(&f->whole.breakdown);
	check_breakdown(&f->steady.breakdown);
	check_breakdown(&f->start_up);
	for (size_t i = 0; steps && i < f->steps.steps; i++) {
		FUZZ_CHECK(steps->span[i].from_ns < steps->span[i].to_ns);
	}
	for (size_t i = 0; i < f->nccl.launches; i++) {
		const struct nccl_launch *l = &f->nccl.launch[i];

		FUZZ_CHECK(l->start_ns <= l->ready_ns && l->ready_ns <= l->end_ns);
		FUZZ_CHECK(l->fastest_ns <= l->end_ns - l->start_ns);
	}
}

/* Counts and times are not negative, however large the file says they are. */
static void check_json(json_t *j)
{
	const char *key;
	json_t *value;
	size_t i;

	FUZZ_CHECK(j && (!json_is_integer(j) || json_integer_value(j) >= 0));
	json_object_foreach(j, key, value)
	{
		check_json(value);
	}
	json_array_foreach(j, i, value)
	{
		check_json(value);
	}
}

/* The segments go to their places. */
static void spread(int fd, const uint8_t *data, size_t size)
{
	struct ring_header h;
	uint64_t head = ring_segments_at(RING_SEGMENTS_MIN), at = head;

	if (size <= head) {
		FUZZ_CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
		return;
	}
	memcpy(&h, data, sizeof(h));
	FUZZ_CHECK(pwrite(fd, data, head, 0) == (ssize_t)head);
	for (unsigned i = 0; i < RING_SEGMENTS_MIN && at < size; i++) {
		struct ring_segment s;
		size_t part;

		memcpy(&s, data + sizeof(h) + i * sizeof(s), sizeof(s));
		part = s.used < size - at ? s.used : size - at;
		part = part < RING_SEGMENT ? part : RING_SEGMENT;
		FUZZ_CHECK(pwrite(fd, data + at, part, (off_t)(head + (uint64_t)i * RING_SEGMENT)) ==
			   (ssize_t)part);
		at += part;
	}
}

static void write_file(const char *dir, const uint8_t *data, size_t size)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/1.ring", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	FUZZ_CHECK(fd >= 0);
	spread(fd, data, size);
	close(fd);
}

static char dir[64]; /* of memory, where /dev/shm is */

static void remove_dir(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/1.ring", dir);
	unlink(path);
	rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct page page = {.command = "x", .ending = "exit code 0", .note = ""};
	struct timeline t;
	struct findings found;
	json_t *json;
	struct text note = {0}, out = {0};
	struct error err = {0};

	if (!*dir) {
		snprintf(dir, sizeof(dir), "%s/assay-fuzz-XXXXXX",
			 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		FUZZ_CHECK(mkdtemp(dir));
		atexit(remove_dir);
	}
	write_file(dir, data, size);
	if (!timeline_read(&t, dir, 100000, &note, &err)) {
		check(&t);
		FUZZ_CHECK(!findings_of(&found, &t, NULL, &err));
		check_found(&found);
		page.f = &found;
		page_markdown(&out, &page);
		page_html(&out, &page);
		summary_csv(&out, &found.whole.summary, &t);
		findings_nccl_csv(&out, &found);
		json = findings_json(&found);
		check_json(json);
		json_decref(json);
		findings_release(&found);
	}
	timeline_release(&t);
	text_release(&note);
	text_release(&out);
	return 0;
}
