/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/train/hang.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/train/train.h"
#include "core/json/member.h"
#include "core/text/text.h"
#include "journal/field.h"
#include "team/links/flight.h"

static json_t *named_json(const struct team_flight_named *c)
{
	return json_pack("{s:i, s:i, s:I, s:i}", "kind", (int)c->kind, "stream", (int)c->stream, "bytes",
			 (json_int_t)c->bytes, "layer", (int)c->layer);
}

static json_t *count_json(const struct team_flight_state *f)
{
	return json_pack("{s:I, s:I, s:I, s:b, s:o, s:o, s:f}", "asked", (json_int_t)f->asked, "begun",
			 (json_int_t)f->begun, "ended", (json_int_t)f->ended, "by_device", f->by_device,
			 "last", named_json(&f->last), "at", named_json(&f->at), "since_s", f->since_s);
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

static bool named_of(struct team_flight_named *c, const json_t *j)
{
	const json_int_t kind = json_integer_value(json_object_get(j, "kind")),
			 stream = json_integer_value(json_object_get(j, "stream"));

	if (!json_is_object(j) || kind < 0 || kind >= TEAM_FLIGHT_COUNT || stream < 0 ||
	    stream >= TEAM_FLIGHT_STREAM_COUNT)
		return false;
	*c = (struct team_flight_named){.kind = (enum team_flight_kind)kind,
					.stream = (enum team_flight_stream)stream,
					.bytes = (uint64_t)json_integer_value(json_object_get(j, "bytes")),
					.layer = (int32_t)json_integer_value(json_object_get(j, "layer"))};
	return true;
}

static bool count_of(struct team_flight_state *f, const json_t *flight, const char *of)
{
	const json_t *j = json_object_get(flight, of);

	*f = (struct team_flight_state){.asked = (uint64_t)json_integer_value(json_object_get(j, "asked")),
					.begun = (uint64_t)json_integer_value(json_object_get(j, "begun")),
					.ended = (uint64_t)json_integer_value(json_object_get(j, "ended")),
					.by_device = json_is_true(json_object_get(j, "by_device")),
					.since_s = json_number_value(json_object_get(j, "since_s")),
					.given_s = json_number_value(json_object_get(flight, "given_s")),
					.worked_s = json_number_value(json_object_get(flight, "worked_s"))};
	return named_of(&f->last, json_object_get(j, "last")) && named_of(&f->at, json_object_get(j, "at"));
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

/* "collective 1204 (all-reduce of the gradient, 53248 bytes, on the communication stream)" */
static void name_collective(char out[224], uint64_t number, const struct team_flight_named *c, bool within)
{
	const char *copy = within ? " within its copy of the model" : "",
		   *stream = team_flight_stream_text(c->stream);
	char layer[48] = "", bytes[32] = "";

	if (c->bytes)
		snprintf(bytes, sizeof(bytes), ", %llu bytes", (unsigned long long)c->bytes);
	if ((c->kind == TEAM_FLIGHT_ALL_REDUCE || c->kind == TEAM_FLIGHT_REDUCE_SCATTER ||
	     c->kind == TEAM_FLIGHT_ALL_GATHER) &&
	    c->layer >= 0)
		snprintf(layer, sizeof(layer), ", layer %d and above", (int)c->layer);
	if (c->kind == TEAM_FLIGHT_NONE)
		snprintf(out, 224, "collective %llu%s", (unsigned long long)number, copy);
	else
		snprintf(out, 224, "collective %llu (%s%s%s%s%s%s)", (unsigned long long)number,
			 team_flight_text(c->kind), layer, copy, bytes, *stream ? ", on the " : "", stream);
}

/* What the records of ranks from `from` on say of a collective. */
static struct team_flight_named named_in(const struct team_flight_state *f, const bool *known, unsigned from,
					 unsigned count, uint64_t number)
{
	for (unsigned r = from; r < from + count; r++) {
		if (known[r] && f[r].begun == number && f[r].at.kind != TEAM_FLIGHT_NONE)
			return f[r].at;
		if (known[r] && f[r].asked == number)
			return f[r].last;
	}
	return (struct team_flight_named){0};
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

	if (f->by_device && team_flight_before(f))
		snprintf(work, sizeof(work), "its last kernel has not ended for %.0f s; ", f->since_s);
	else if (f->worked_s >= 0 && (f->given_s < 0 || f->given_s >= f->worked_s))
		snprintf(work, sizeof(work), "its last %s ended %.0f s ago; ", gpu ? "kernel" : "computation",
			 f->worked_s);
	else if (f->given_s >= 0)
		snprintf(work, sizeof(work),
			 "the work that its GPU got %.0f s ago has not ended as far as known; ", f->given_s);
	snprintf(out, size, "%sits %s %s", work, stopped ? "process" : "host thread",
		 *place ? place : "is in an unknown state");
}

/* The rank of `count` ranks from `from` on that has got furthest, but not `behind`. */
static unsigned first_of(const struct team_flight_state *f, unsigned from, unsigned count, unsigned behind)
{
	unsigned first = from + (behind == from);

	for (unsigned r = from; r < from + count; r++)
		if (r != behind && (f[r].begun > f[first].begun ||
				    (f[r].begun == f[first].begun && f[r].asked > f[first].asked)))
			first = r;
	return first;
}

/* The rank that keeps the others waiting, because it has not entered what they are in. */
static void explain_behind(struct training *t, const json_t *all, const struct flights *flights,
			   struct team_flight_found found, unsigned tensor)
{
	const struct team_flight_state *f = found.within ? flights->copy : flights->all;
	const unsigned behind = (unsigned)found.rank, copy = behind / tensor * tensor,
		       from = found.within ? copy : 0, count = found.within ? tensor : flights->size,
		       first = first_of(f, from, count, behind);
	const uint64_t next = f[behind].begun + 1;
	const struct team_flight_named named = named_in(f, flights->known, from, count, next);
	char what[224], who[128], place[360], others[96] = "";
	struct text out = {0};

	name_collective(what, next, &named, found.within);
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

/* The ranks from `from` on are all inside of one collective. *since_s: for how long. */
static bool all_inside(const struct team_flight_state *f, const bool *known, unsigned from, unsigned count,
		       double *since_s)
{
	*since_s = INFINITY;
	for (unsigned r = from; r < from + count; r++) {
		if (!known[r] || !team_flight_inside(&f[r]) || f[r].begun != f[from].begun)
			return false;
		*since_s = fmin(*since_s, f[r].since_s);
	}
	return true;
}

/* No rank is named: the records show that none is behind, or do not show which. False: the latter. */
static bool explain_nobody(struct training *t, const struct flights *flights, unsigned tensor)
{
	const bool gpu = control_shape(t->ranks.team.control)->rank[0].gpu_count != 0;
	const struct team_flight_state *f = flights->all;
	unsigned from = 0, count = flights->size;
	bool within = false, inside;
	char what[224], who[64] = "all ranks";
	double since_s;

	inside = all_inside(f, flights->known, 0, count, &since_s);
	for (unsigned r = 0; !inside && tensor > 1 && r < flights->size; r += tensor) {
		inside = within = all_inside(flights->copy, flights->known, r, tensor, &since_s);
		from = r;
	}
	if (within) {
		f = flights->copy;
		count = tensor;
		snprintf(who, sizeof(who), "ranks %u to %u", from, from + tensor - 1);
	}
	if (!inside)
		return false;
	const struct team_flight_named named = named_in(f, flights->known, from, count, f[from].begun);

	name_collective(what, f[from].begun, &named, within);
	if (named.stream == TEAM_FLIGHT_STREAM_COMMUNICATION && !f[from].by_device)
		snprintf(t->end.text, sizeof(t->end.text),
			 "training hangs: %s have enqueued %s, and this driver does not tell which GPU has "
			 "not reached it",
			 who, what);
	else
		snprintf(t->end.text, sizeof(t->end.text),
			 "%s have been in %s for %.0f s: no rank is behind by the records, so %s", who, what,
			 since_s,
			 named.stream == TEAM_FLIGHT_STREAM_COMMUNICATION
				 ? "a link, NCCL or a kernel that occupies a whole GPU hangs"
			 : gpu ? "the network hangs"
			       : "the network or MPI hangs");
	return true;
}

static void explain_stopped(struct training *t, const struct flights *f, unsigned stopped)
{
	char what[224];

	name_collective(what, f->all[stopped].asked, &f->all[stopped].last, false);
	snprintf(t->end.text, sizeof(t->end.text),
		 "rank %u on %.40s is stopped (SIGSTOP) in %s, in which the others wait", stopped,
		 node_of(t, stopped), what);
}

/* `within`: the ranks share a copy of the model. */
static void explain_difference(struct training *t, const struct team_flight_state *f, unsigned a, unsigned b,
			       bool within)
{
	char what[224], other[224];

	name_collective(what, f[a].asked, &f[a].last, within);
	name_collective(other, f[b].asked, &f[b].last, within);
	snprintf(t->end.text, sizeof(t->end.text), "ranks %u and %u entered different collectives: %s and %s",
		 a, b, what, other);
}

/* Whether two ranks of a copy asked for different collectives within it. These are not in the table that
 * ranks compare before they enter a collective. */
static bool copy_differs(const struct flights *f, unsigned tensor, unsigned *a, unsigned *b)
{
	bool differs = false;

	for (unsigned r = 0; tensor > 1 && r < f->size && !differs; r += tensor) {
		differs = team_flight_differs(f->copy + r, f->known + r, tensor, a, b);
		*a += r;
		*b += r;
	}
	return differs;
}

/* Whether any rank recorded a collective. */
static bool is_recorded(const struct flights *f)
{
	bool recorded = false;

	for (unsigned r = 0; r < f->size; r++)
		recorded |= f->known[r] && (f->all[r].asked || f->copy[r].asked);
	return recorded;
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

bool train_hang_explain(struct training *t, const json_t *all, bool hung)
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
	if (found.rank >= 0 && stopped >= 0 && f.all[stopped].begun == f.all[found.rank].begun)
		found = (struct team_flight_found){.rank = stopped,
						   .within = found.within && stopped == found.rank};
	if ((found.rank < 0 || found.shared) && copy_differs(&f, tensor, &a, &b))
		explain_difference(t, f.copy, a, b, true);
	else if (found.rank >= 0)
		explain_behind(t, all, &f, found, tensor);
	else if (team_flight_differs(f.all, f.known, size, &a, &b))
		explain_difference(t, f.all, a, b, false);
	else if (stopped >= 0)
		explain_stopped(t, &f, (unsigned)stopped);
	else if (!is_recorded(&f))
		explained = false;
	else if (!explain_nobody(t, &f, tensor)) {
		explained = hung;
		if (hung)
			text_copy(t->end.text, sizeof(t->end.text),
				  "training hangs, and the flight records show no rank that is behind the "
				  "others");
	}
	flights_release(&f);
	return explained;
}

void train_hang_other(char *out, size_t size, unsigned rank, const char *node, const char *text, bool hung)
{
	const char *more = hung ? "; the ranks' records do not show which one of them hangs" : "";

	if (!strncmp(text, "rank ", 5))
		snprintf(out, size, "%.400s%s", text, more);
	else
		snprintf(out, size, "rank %u on %.40s: %.360s%s", rank, node, text, more);
}
