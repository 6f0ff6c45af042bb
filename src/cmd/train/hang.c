/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/train/hang.h"
#include <stdlib.h>
#include <string.h>
#include "cmd/train/train.h"
#include "core/json/member.h"
#include "core/text/text.h"
#include "journal/field.h"
#include "team/links/flight.h"

void train_hang_record(const struct training *t, json_t *out)
{
	struct team_flight_state f;
	const char state[2] = {t->ranks.state, '\0'};

	if (!team_flight_read(&f, t->ranks.board, clock_now_ns(clock_monotonic())))
		return;
	json_object_set_new(out, "flight",
			    json_pack("{s:I, s:I, s:I, s:I, s:i, s:i, s:f, s:f, s:f, s:s, s:o}", "asked",
				      (json_int_t)f.asked, "begun", (json_int_t)f.begun, "ended",
				      (json_int_t)f.ended, "bytes", (json_int_t)f.bytes, "kind", (int)f.kind,
				      "layer", (int)f.layer, "since_s", f.since_s, "given_s", f.given_s,
				      "worked_s", f.worked_s, "state", state, "place",
				      field_string(t->ranks.place)));
}

static bool flight_of(struct team_flight_state *f, const json_t *rank)
{
	const json_t *j = json_object_get(rank, "flight");
	const json_int_t kind = json_integer_value(json_object_get(j, "kind"));

	*f = (struct team_flight_state){.asked = (uint64_t)json_integer_value(json_object_get(j, "asked")),
					.begun = (uint64_t)json_integer_value(json_object_get(j, "begun")),
					.ended = (uint64_t)json_integer_value(json_object_get(j, "ended")),
					.bytes = (uint64_t)json_integer_value(json_object_get(j, "bytes")),
					.layer = (int32_t)json_integer_value(json_object_get(j, "layer")),
					.since_s = json_number_value(json_object_get(j, "since_s")),
					.given_s = json_number_value(json_object_get(j, "given_s")),
					.worked_s = json_number_value(json_object_get(j, "worked_s"))};
	if (!json_is_object(j) || kind < 0 || kind >= TEAM_FLIGHT_COUNT)
		return false;
	f->kind = (enum team_flight_kind)kind;
	return true;
}

static void name_collective(char out[160], const struct team_flight_state *f)
{
	char layer[48] = "";

	if ((f->kind == TEAM_FLIGHT_ALL_REDUCE || f->kind == TEAM_FLIGHT_REDUCE_SCATTER ||
	     f->kind == TEAM_FLIGHT_ALL_GATHER) &&
	    f->layer >= 0)
		snprintf(layer, sizeof(layer), ", layer %d and above", (int)f->layer);
	snprintf(out, 160, "collective %llu (%s%s, %llu bytes)", (unsigned long long)f->asked,
		 team_flight_text(f->kind), layer, (unsigned long long)f->bytes);
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

/* The rank that keeps the others waiting, because it has not entered what they are in. */
static void explain_behind(struct training *t, const json_t *all, const struct team_flight_state *f,
			   unsigned behind, unsigned first)
{
	const uint64_t next = f[behind].asked > f[behind].begun ? f[behind].asked : f[behind].asked + 1;
	char what[160], who[128], place[360];
	struct text out = {0};

	if (f[first].asked == next)
		name_collective(what, &f[first]);
	else
		snprintf(what, sizeof(what), "collective %llu", (unsigned long long)next);
	name_rank(who, t, behind);
	name_place(place, sizeof(place), t, all, behind, &f[behind]);
	text_addf(&out, "%s never entered %s; rank %u waited for it for %.0f s; %s", who, what, first,
		  f[first].since_s, place);
	text_copy(t->end.text, sizeof(t->end.text), text_str(&out));
	text_release(&out);
}

bool train_hang_explain(struct training *t, const json_t *all)
{
	const unsigned size = control_shape(t->ranks.team.control)->size;
	struct team_flight_state *f = calloc(size, sizeof(*f));
	bool *known = calloc(size, sizeof(*known)), found = false;
	char what[160], other[160];
	unsigned a, b, first = 0;
	int behind, stopped = -1;

	for (unsigned r = 0; f && known && r < size; r++) {
		known[r] = flight_of(&f[r], json_array_get(all, r));
		first = f[r].asked > f[first].asked ? r : first;
		if (*word_of(all, r, "state") == 'T')
			stopped = (int)r;
	}
	behind = f && known ? team_flight_behind(f, known, size) : -1;
	if (behind >= 0 && stopped >= 0 && known[stopped] && f[stopped].asked == f[behind].asked)
		behind = stopped; /* others may be as far, and wait for it in their last collective */
	if (behind >= 0) {
		explain_behind(t, all, f, (unsigned)behind, first == (unsigned)behind ? !behind : first);
		found = true;
	} else if (f && known && team_flight_differs(f, known, size, &a, &b)) {
		name_collective(what, &f[a]);
		name_collective(other, &f[b]);
		snprintf(t->end.text, sizeof(t->end.text),
			 "ranks %u and %u entered different collectives: %s and %s", a, b, what, other);
		found = true;
	}
	if (!found && known && stopped >= 0 && known[stopped]) {
		name_collective(what, &f[stopped]);
		snprintf(t->end.text, sizeof(t->end.text),
			 "rank %d on %.40s is stopped (SIGSTOP) in %s, in which the others wait", stopped,
			 node_of(t, (unsigned)stopped), what);
		found = true;
	}
	free(f);
	free(known);
	return found;
}
