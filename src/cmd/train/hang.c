/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/train/hang.h"
#include <stdlib.h>
#include <string.h>
#include "cmd/train/train.h"
#include "core/json/member.h"
#include "core/text/text.h"
#include "journal/field.h"
#include "team/links/flight.h"

static json_t *count_json(const struct team_flight_state *f)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:i, s:i, s:f}", "asked", (json_int_t)f->asked, "begun",
			 (json_int_t)f->begun, "ended", (json_int_t)f->ended, "bytes", (json_int_t)f->bytes,
			 "kind", (int)f->kind, "layer", (int)f->layer, "since_s", f->since_s);
}

void train_hang_record(const struct training *t, json_t *out)
{
	const uint64_t now_ns = clock_now_ns(clock_monotonic());
	const char state[2] = {t->ranks.state, '\0'};
	struct team_flight_state all, copy;

	if (!team_flight_read(&all, t->ranks.board, TEAM_FLIGHT_OF_ALL, now_ns) ||
	    !team_flight_read(&copy, t->ranks.board, TEAM_FLIGHT_OF_COPY, now_ns))
		return;
	json_object_set_new(out, "flight",
			    json_pack("{s:o, s:o, s:f, s:f, s:s, s:o}", "all", count_json(&all), "copy",
				      count_json(&copy), "given_s", all.given_s, "worked_s", all.worked_s,
				      "state", state, "place", field_string(t->ranks.place)));
}

/* The counts of all ranks, by rank. */
struct flights {
	struct team_flight_state *all, *copy;
	bool *known;
	unsigned size;
};

static void flights_release(struct flights *f)
{
	free(f->all);
	free(f->copy);
	free(f->known);
}

static bool count_of(struct team_flight_state *f, const json_t *flight, const char *of)
{
	const json_t *j = json_object_get(flight, of);
	const json_int_t kind = json_integer_value(json_object_get(j, "kind"));

	*f = (struct team_flight_state){.asked = (uint64_t)json_integer_value(json_object_get(j, "asked")),
					.begun = (uint64_t)json_integer_value(json_object_get(j, "begun")),
					.ended = (uint64_t)json_integer_value(json_object_get(j, "ended")),
					.bytes = (uint64_t)json_integer_value(json_object_get(j, "bytes")),
					.layer = (int32_t)json_integer_value(json_object_get(j, "layer")),
					.since_s = json_number_value(json_object_get(j, "since_s")),
					.given_s = json_number_value(json_object_get(flight, "given_s")),
					.worked_s = json_number_value(json_object_get(flight, "worked_s"))};
	if (!json_is_object(j) || kind < 0 || kind >= TEAM_FLIGHT_COUNT)
		return false;
	f->kind = (enum team_flight_kind)kind;
	return true;
}

/* False: no memory. */
static bool flights_of(struct flights *f, const json_t *all, unsigned size)
{
	*f = (struct flights){calloc(size, sizeof(*f->all)), calloc(size, sizeof(*f->copy)),
			      calloc(size, sizeof(*f->known)), size};
	if (!f->all || !f->copy || !f->known)
		return false;
	for (unsigned r = 0; r < size; r++) {
		const json_t *flight = json_object_get(json_array_get(all, r), "flight");

		f->known[r] = count_of(&f->all[r], flight, "all") && count_of(&f->copy[r], flight, "copy");
	}
	return true;
}

static void name_collective(char out[160], const struct team_flight_state *f, bool within)
{
	char layer[48] = "";

	if ((f->kind == TEAM_FLIGHT_ALL_REDUCE || f->kind == TEAM_FLIGHT_REDUCE_SCATTER ||
	     f->kind == TEAM_FLIGHT_ALL_GATHER) &&
	    f->layer >= 0)
		snprintf(layer, sizeof(layer), ", layer %d and above", (int)f->layer);
	snprintf(out, 160, "collective %llu (%s%s%s, %llu bytes)", (unsigned long long)f->asked,
		 team_flight_text(f->kind), layer, within ? " within its copy of the model" : "",
		 (unsigned long long)f->bytes);
}

static const char *node_of(const struct training *t, unsigned rank)
{
	const struct team_shape *s = control_shape(t->ranks.team.control);

	return s->node[s->rank[rank].node].shown;
}

static const char *word_of(const json_t *all, unsigned rank, const char *member)
{
	return json_member_text(json_object_get(json_array_get(all, rank), "flight"), member);
}

/* "rank 5 on node-b (GPU 0000:8d:00.0)" */
static void name_rank(char out[128], const struct training *t, unsigned rank)
{
	const struct team_rank *r = &control_shape(t->ranks.team.control)->rank[rank];

	if (r->gpu_count)
		snprintf(out, 128, "rank %u on %.40s (GPU %.15s)", rank, node_of(t, rank), r->pci[0]);
	else
		snprintf(out, 128, "rank %u on %.40s", rank, node_of(t, rank));
}

/* What a rank computed last, and what its host thread waits for. */
static void name_place(char *out, size_t size, const struct training *t, const json_t *all, unsigned rank,
		       const struct team_flight_state *f)
{
	const bool gpu = control_shape(t->ranks.team.control)->rank[rank].gpu_count != 0;
	const char *place = word_of(all, rank, "place");
	const bool stopped = *word_of(all, rank, "state") == 'T';
	char work[96] = "";

	if (f->worked_s >= 0 && (f->given_s < 0 || f->given_s >= f->worked_s))
		snprintf(work, sizeof(work), "its last %s ended %.0f s ago; ", gpu ? "kernel" : "computation",
			 f->worked_s);
	else if (f->given_s >= 0)
		snprintf(work, sizeof(work),
			 "the work that its GPU got %.0f s ago has not ended as far as known; ", f->given_s);
	snprintf(out, size, "%sits %s %s", work, stopped ? "process" : "host thread",
		 *place ? place : "is in an unknown state");
}

/* The rank of `count` ranks from `from` on that has asked for the most collectives, but not `behind`. */
static unsigned first_of(const struct team_flight_state *f, unsigned from, unsigned count, unsigned behind)
{
	unsigned first = from + (behind == from);

	for (unsigned r = from; r < from + count; r++)
		if (r != behind && f[r].asked > f[first].asked)
			first = r;
	return first;
}

/* The rank that keeps the others waiting, because it has not entered what they are in. */
static void explain_behind(struct training *t, const json_t *all, const struct flights *flights,
			   struct team_flight_found found, unsigned tensor)
{
	const struct team_flight_state *f = found.within ? flights->copy : flights->all;
	const unsigned behind = (unsigned)found.rank, copy = behind / tensor * tensor;
	const unsigned first =
		found.within ? first_of(f, copy, tensor, behind) : first_of(f, 0, flights->size, behind);
	const uint64_t next = f[behind].asked > f[behind].begun ? f[behind].asked : f[behind].asked + 1;
	char what[160], who[128], place[360], others[96] = "";
	struct text out = {0};

	if (f[first].asked == next)
		name_collective(what, &f[first], found.within);
	else
		snprintf(what, sizeof(what), "collective %llu%s", (unsigned long long)next,
			 found.within ? " within its copy of the model" : "");
	name_rank(who, t, behind);
	name_place(place, sizeof(place), t, all, behind, &f[behind]);
	if (found.shared)
		snprintf(others, sizeof(others),
			 ", or another of ranks %u to %u, which share a copy with it,", copy,
			 copy + tensor - 1);
	text_addf(&out, "%s%s never entered %s; rank %u waited for it for %.0f s; %s", who, others, what,
		  first, f[first].since_s, place);
	text_copy(t->end.text, sizeof(t->end.text), text_str(&out));
	text_release(&out);
}

static void explain_stopped(struct training *t, const struct flights *f, unsigned stopped)
{
	char what[160];

	name_collective(what, &f->all[stopped], false);
	snprintf(t->end.text, sizeof(t->end.text),
		 "rank %u on %.40s is stopped (SIGSTOP) in %s, in which the others wait", stopped,
		 node_of(t, stopped), what);
}

static void explain_difference(struct training *t, const struct flights *f, unsigned a, unsigned b)
{
	char what[160], other[160];

	name_collective(what, &f->all[a], false);
	name_collective(other, &f->all[b], false);
	snprintf(t->end.text, sizeof(t->end.text), "ranks %u and %u entered different collectives: %s and %s",
		 a, b, what, other);
}

/* The last rank whose process is stopped, if it has a record; -1. */
static int stopped_of(const struct flights *f, const json_t *all)
{
	int stopped = -1;

	for (unsigned r = 0; r < f->size; r++)
		if (f->known[r] && *word_of(all, r, "state") == 'T')
			stopped = (int)r;
	return stopped;
}

bool train_hang_explain(struct training *t, const json_t *all)
{
	const unsigned size = control_shape(t->ranks.team.control)->size,
		       wished = t->config.training.tensor_parallel_size,
		       tensor = wished > 1 && size % wished == 0 ? wished : 1;
	struct team_flight_found found;
	struct flights f;
	unsigned a, b;
	int stopped;
	bool explained = true;

	if (!flights_of(&f, all, size)) {
		flights_release(&f);
		return false;
	}
	stopped = stopped_of(&f, all);
	found = team_flight_behind_copies(f.all, f.copy, f.known, size, tensor);
	/* others may be as far, and wait for it in their last collective */
	if (found.rank >= 0 && stopped >= 0 && f.all[stopped].asked == f.all[found.rank].asked)
		found = (struct team_flight_found){.rank = stopped,
						   .within = found.within && stopped == found.rank};
	if (found.rank >= 0)
		explain_behind(t, all, &f, found, tensor);
	else if (team_flight_differs(f.all, f.known, size, &a, &b))
		explain_difference(t, &f, a, b);
	else if (stopped >= 0)
		explain_stopped(t, &f, (unsigned)stopped);
	else
		explained = false;
	flights_release(&f);
	return explained;
}
