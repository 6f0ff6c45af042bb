/* SPDX-License-Identifier: Apache-2.0 */
#include "train/mesh/flight_words.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* The words' pages. They belong to the board, which lives as long as the process. */
static void *pages_of(struct team_flight_words *words, size_t *size)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)words / page * page,
			end = (uintptr_t)(words + TEAM_FLIGHT_OFS);

	*size = (end - from + page - 1) / page * page;
	return (char *)words - ((uintptr_t)words - from);
}

void flight_words_stop(struct flight_words *w)
{
	size_t size;

	if (!w->at)
		return;
	w->at = 0;
	gpu_host_unregister(w->device, pages_of(team_flight_words(w->team->board), &size));
}

/* Whether a word that the stream writes arrives. The words are 0 again afterwards. */
static bool arrives(const struct flight_words *w, struct team_flight_words *words)
{
	bool arrived = !gpu_stream_write32(w->stream, w->at, 1, NULL) && !gpu_stream_wait(w->stream, NULL) &&
		       atomic_load(&words->reached) == 1;

	atomic_store(&words->reached, 0);
	return arrived;
}

static void try_writing(struct flight_words *w)
{
	struct team_flight_words *words = team_flight_words(w->team->board);
	size_t size;
	void *pages;

	if (!words)
		return;
	pages = pages_of(words, &size);
	if (gpu_host_register(w->device, pages, size, NULL))
		return;
	if (gpu_host_pointer(w->device, words, &w->at, NULL) || !arrives(w, words)) {
		w->at = 0;
		gpu_host_unregister(w->device, pages);
	}
}

enum status flight_words_start(struct flight_words *w, enum status st, struct error *err)
{
	struct team *team = w->team;
	bool *writes = calloc(team->size, sizeof(*writes)), mine;

	if (!st && !writes)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the ranks");
	if (!st)
		try_writing(w);
	mine = w->at != 0;
	st = team_agree(team, st, err);
	if (!st)
		st = team_gather(team, &mine, sizeof(mine), writes, err);
	for (unsigned r = 0; r < team->size; r++)
		if (st || !writes[r])
			flight_words_stop(w);
	team_flight_by_device(team->board, w->at != 0);
	free(writes);
	return st;
}

static enum status write_at(const struct flight_words *w, enum team_flight_of of, size_t word,
			    uint64_t number, struct error *err)
{
	return !w->at ? STATUS_OK
		      : gpu_stream_write32(w->stream, w->at + of * sizeof(struct team_flight_words) + word,
					   (uint32_t)number, err);
}

enum status flight_words_reach(const struct flight_words *w, enum team_flight_of of, uint64_t number,
			       struct error *err)
{
	return write_at(w, of, offsetof(struct team_flight_words, reached), number, err);
}

enum status flight_words_leave(const struct flight_words *w, enum team_flight_of of, uint64_t number,
			       struct error *err)
{
	return write_at(w, of, offsetof(struct team_flight_words, left), number, err);
}
