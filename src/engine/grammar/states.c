/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/states.h"

enum {
	CONFIGS_MOST = 1 << 14, /* of one state */
	WORK_MOST = 1 << 18,	/* configurations that one transition may visit */
	BUCKETS = 1 << 10,
	SEEN_SMALL = 256,
};

struct state state_dead = {.count = 0};

static uint32_t mix(uint32_t a, uint32_t b)
{
	uint64_t z = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(z >> 32) ^ (uint32_t)z;
}

enum status states_init(struct states *s, const struct automaton *a, size_t budget, size_t steps,
			struct error *err)
{
	bool plain[256] = {false};

	*s = (struct states){.a = a,
			     .budget = budget,
			     .steps = steps,
			     .bucket_count = BUCKETS,
			     .frame_bucket_count = BUCKETS,
			     .frame_count = 1,
			     .frame_room = 64,
			     .seen_room = SEEN_SMALL};
	s->buckets = calloc(s->bucket_count, sizeof(*s->buckets));
	s->frame_buckets = calloc(s->frame_bucket_count, sizeof(*s->frame_buckets));
	s->frames = calloc(s->frame_room, sizeof(*s->frames));
	s->seen = calloc(s->seen_room, sizeof(*s->seen));
	if (!s->buckets || !s->frame_buckets || !s->frames || !s->seen) {
		states_release(s);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "out of memory for a grammar's states");
	}
	for (unsigned byte = 0x20; byte < 0x80; byte++)
		if (byte != '"' && byte != '\\' && !plain[a->class_of[byte]]) {
			plain[a->class_of[byte]] = true;
			s->plain_class[s->plain_classes++] = a->class_of[byte];
		}
	return STATUS_OK;
}

static void state_free(struct states *s, struct state *state)
{
	s->bytes -= sizeof(*state) + s->a->classes * sizeof(state->next[0]) +
		    state->count * sizeof(state->configs[0]);
	if (state->allowed)
		s->bytes -= sizeof(*state->allowed) + state->allowed->count * sizeof(uint32_t);
	free(state->allowed);
	free(state);
}

void states_release(struct states *s)
{
	for (size_t i = 0; s->buckets && i < s->bucket_count; i++) {
		for (struct state *state = s->buckets[i], *next; state; state = next) {
			next = state->chain;
			state_free(s, state);
		}
	}
	free(s->buckets);
	free(s->frame_buckets);
	free(s->frames);
	free(s->work.items);
	free(s->found.items);
	free(s->seen);
	*s = (struct states){0};
}

static void rehash_states(struct states *s)
{
	size_t count = s->bucket_count * 2;
	struct state **buckets = calloc(count, sizeof(struct state *));

	if (!buckets)
		return; /* slower, but right */
	for (size_t i = 0; i < s->bucket_count; i++) {
		for (struct state *state = s->buckets[i], *next; state; state = next) {
			next = state->chain;
			state->chain = buckets[state->hash & (count - 1)];
			buckets[state->hash & (count - 1)] = state;
		}
	}
	free(s->buckets);
	s->buckets = buckets;
	s->bucket_count = count;
}

static void link_frames(struct states *s)
{
	memset(s->frame_buckets, 0, s->frame_bucket_count * sizeof(*s->frame_buckets));
	s->free_frame = 0;
	for (uint32_t i = 1; i < s->frame_count; i++) {
		struct frame *f = &s->frames[i];
		uint32_t *bucket = f->used ? &s->frame_buckets[mix(f->edge ^ f->count << 20, f->parent) &
							       (s->frame_bucket_count - 1)]
					   : &s->free_frame;

		f->chain = *bucket;
		*bucket = i;
	}
}

static bool grow_frames(struct states *s)
{
	size_t room = s->frame_room * 2;
	struct frame *frames = realloc(s->frames, room * sizeof(*frames));
	uint32_t *buckets;

	if (!frames)
		return false;
	s->frames = frames;
	s->bytes += s->frame_room * sizeof(*frames);
	s->frame_room = room;
	if (room > s->frame_bucket_count) {
		buckets = realloc(s->frame_buckets, room * sizeof(*buckets));
		if (!buckets)
			return false;
		s->frame_buckets = buckets;
		s->frame_bucket_count = room;
		link_frames(s);
	}
	return true;
}

/* The frame of call number `count` through this edge. 0: failed. */
static uint32_t push(struct states *s, uint32_t edge, uint32_t count, uint32_t parent)
{
	uint32_t hash = mix(edge ^ count << 20, parent), *bucket, id;

	for (id = s->frame_buckets[hash & (s->frame_bucket_count - 1)]; id; id = s->frames[id].chain)
		if (s->frames[id].edge == edge && s->frames[id].count == count &&
		    s->frames[id].parent == parent)
			return id;
	id = s->free_frame;
	if (id) {
		s->free_frame = s->frames[id].chain;
	} else {
		if (s->frame_count == s->frame_room && !grow_frames(s)) {
			s->failed = true;
			return 0;
		}
		id = (uint32_t)s->frame_count++;
	}
	bucket = &s->frame_buckets[hash & (s->frame_bucket_count - 1)];
	s->frames[id] = (struct frame){.edge = edge,
				       .count = count,
				       .parent = parent,
				       .chain = *bucket,
				       .depth = (uint16_t)(s->frames[parent].depth + 1),
				       .used = true};
	*bucket = id;
	return id;
}

static bool list_add(struct config_list *list, struct config c)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct config *grown = realloc(list->items, room * sizeof(*grown));

		if (!grown)
			return false;
		list->items = grown;
		list->room = room;
	}
	list->items[list->count++] = c;
	return true;
}

static bool grow_seen(struct states *s)
{
	size_t room = s->seen_room * 2;
	uint32_t *seen = calloc(room, sizeof(*seen));

	if (!seen)
		return false;
	for (uint32_t i = 0; i < s->work.count; i++) {
		size_t at = mix(s->work.items[i].node, s->work.items[i].frame) & (room - 1);

		while (seen[at])
			at = (at + 1) & (room - 1);
		seen[at] = i + 1;
	}
	free(s->seen);
	s->seen = seen;
	s->seen_room = room;
	return true;
}

/* Counts work. False: too much for one call. */
static bool use_steps(struct states *s, size_t steps)
{
	s->failed |= steps > s->steps_left;
	s->steps_left -= s->failed ? 0 : steps;
	return !s->failed;
}

/* Adds a configuration once, unless its text cannot end within the nesting limit. */
static void visit(struct states *s, uint32_t node, uint32_t frame)
{
	const struct node *n = &s->a->nodes[node];
	size_t at;

	if (n->height == HEIGHT_NONE || s->frames[frame].depth + (size_t)n->height > s->a->depth || s->failed)
		return;
	at = mix(node, frame) & (s->seen_room - 1);
	for (; s->seen[at]; at = (at + 1) & (s->seen_room - 1))
		if (s->work.items[s->seen[at] - 1].node == node &&
		    s->work.items[s->seen[at] - 1].frame == frame)
			return;
	if (!use_steps(s, 1) || s->work.count >= WORK_MOST ||
	    !list_add(&s->work, (struct config){node, frame})) {
		s->failed = true;
		return;
	}
	s->seen[at] = (uint32_t)s->work.count;
	if (s->work.count * 2 > s->seen_room && !grow_seen(s))
		s->failed = true;
}

/* The end of a rule: goes on behind the call, or calls the rule again. */
static void leave_rule(struct states *s, uint32_t frame)
{
	struct frame f = s->frames[frame];
	const struct edge *e;
	uint32_t count;

	if (!frame) {
		s->complete = true;
		return;
	}
	e = &s->a->edges[f.edge];
	if (f.count >= e->min)
		visit(s, e->target, f.parent);
	if (f.count >= e->max)
		return;
	count = e->max == REPEAT_FOREVER && f.count >= e->min ? e->min : f.count + 1;
	visit(s, s->a->starts[e->rule], push(s, f.edge, count, f.parent));
}

static void call_rule(struct states *s, uint32_t edge, uint32_t frame)
{
	const struct edge *e = &s->a->edges[edge];
	uint32_t start = s->a->starts[e->rule];

	if (e->tail) {
		visit(s, start, frame);
		return;
	}
	if (s->a->nodes[start].height == HEIGHT_NONE || s->a->nodes[e->target].height == HEIGHT_NONE ||
	    s->frames[frame].depth + 1u + s->a->nodes[start].height > s->a->depth ||
	    s->frames[frame].depth + (size_t)s->a->nodes[e->target].height > s->a->depth)
		return;
	frame = push(s, edge, 1, frame);
	if (frame)
		visit(s, start, frame);
}

/* Follows all edges that read nothing. */
static void close_work(struct states *s)
{
	for (size_t i = 0; i < s->work.count && !s->failed; i++) {
		struct config c = s->work.items[i];
		const struct node *n = &s->a->nodes[c.node];
		bool reads = false;

		if (n->end)
			leave_rule(s, c.frame);
		for (uint32_t e = n->first; e != EDGE_NONE; e = s->a->edges[e].next) {
			if (s->a->edges[e].kind == EDGE_BYTE)
				reads = true;
			else if (s->a->edges[e].kind == EDGE_EMPTY)
				visit(s, s->a->edges[e].target, c.frame);
			else
				call_rule(s, e, c.frame);
		}
		if (reads && (s->found.count >= CONFIGS_MOST || !list_add(&s->found, c)))
			s->failed = true;
	}
}

static int compare_configs(const void *a, const void *b)
{
	const struct config *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static struct state *find_state(struct states *s, uint32_t hash)
{
	struct state *state = s->buckets[hash & (s->bucket_count - 1)];

	for (; state; state = state->chain)
		if (state->hash == hash && state->count == s->found.count && state->complete == s->complete &&
		    !memcmp(state->configs, s->found.items, state->count * sizeof(struct config)))
			return state;
	return NULL;
}

/* The state of the configurations found. */
static struct state *intern(struct states *s)
{
	size_t next_bytes = s->a->classes * sizeof(struct state *);
	size_t bytes = sizeof(struct state) + next_bytes + s->found.count * sizeof(struct config);
	uint32_t hash = s->complete;
	struct state *state;

	if (!s->found.count && !s->complete)
		return &state_dead;
	if (s->found.count > 1)
		qsort(s->found.items, s->found.count, sizeof(struct config), compare_configs);
	for (size_t i = 0; i < s->found.count; i++)
		hash = mix(mix(hash, s->found.items[i].node), s->found.items[i].frame);
	state = find_state(s, hash);
	if (state)
		return state;
	if (s->bytes + bytes > s->budget)
		return NULL;
	state = calloc(1, bytes);
	if (!state)
		return NULL;
	state->plain = -1;
	state->hash = hash;
	state->count = (uint32_t)s->found.count;
	state->complete = s->complete;
	state->configs = (struct config *)(void *)((char *)state->next + next_bytes);
	if (state->count)
		memcpy(state->configs, s->found.items, state->count * sizeof(struct config));
	state->chain = s->buckets[hash & (s->bucket_count - 1)];
	s->buckets[hash & (s->bucket_count - 1)] = state;
	s->bytes += bytes;
	if (++s->state_count > s->bucket_count)
		rehash_states(s);
	return state;
}

static void begin_work(struct states *s)
{
	uint32_t *small;

	/* Clearing a table that one large transition left behind would slow down all others. */
	if (s->seen_room > SEEN_SMALL && s->work.count * 16 < s->seen_room &&
	    (small = realloc(s->seen, SEEN_SMALL * sizeof(*small)))) {
		s->seen = small;
		s->seen_room = SEEN_SMALL;
	}
	s->work.count = s->found.count = 0;
	s->complete = s->failed = false;
	memset(s->seen, 0, s->seen_room * sizeof(*s->seen));
}

struct state *states_start(struct states *s)
{
	if (s->start)
		return s->start;
	begin_work(s);
	visit(s, s->a->starts[s->a->root], 0);
	close_work(s);
	s->start = s->failed ? NULL : intern(s);
	return s->start;
}

/* Visits the targets of all edges that read this byte. Narrows low to high, the bytes around it that the same
 * edges read. */
static void read_byte(struct states *s, const struct state *from, uint8_t byte, uint8_t *low, uint8_t *high)
{
	for (uint32_t i = 0; i < from->count && !s->failed; i++) {
		const struct edge *e;
		size_t edges = 0;

		for (uint32_t at = s->a->nodes[from->configs[i].node].first; at != EDGE_NONE; at = e->next) {
			e = &s->a->edges[at];
			edges++;
			if (e->kind != EDGE_BYTE)
				continue;
			if (byte < e->low) {
				*high = e->low - 1 < *high ? (uint8_t)(e->low - 1) : *high;
			} else if (byte > e->high) {
				*low = e->high + 1 > *low ? (uint8_t)(e->high + 1) : *low;
			} else {
				*low = e->low > *low ? e->low : *low;
				*high = e->high < *high ? e->high : *high;
				visit(s, e->target, from->configs[i].frame);
			}
		}
		use_steps(s, edges / 8);
	}
}

struct state *state_step(struct states *s, struct state *from, uint8_t byte)
{
	struct state *next = from->next[s->a->class_of[byte]];
	uint8_t low = 0, high = 255;

	if (next)
		return next;
	begin_work(s);
	read_byte(s, from, byte, &low, &high);
	close_work(s);
	next = s->failed ? NULL : intern(s);
	for (unsigned class = s->a->class_of[low]; next && class <= s->a->class_of[high]; class ++)
		from->next[class] = next;
	return next;
}

enum { PLAIN_SET = 16 };
struct state_set {
	struct state *items[PLAIN_SET];
	unsigned count;
};

static bool set_add(struct state_set *set, struct state *state)
{
	for (unsigned i = 0; i < set->count; i++)
		if (set->items[i] == state)
			return true;
	if (set->count == PLAIN_SET)
		return false;
	set->items[set->count++] = state;
	return true;
}

/* Adds the states after each byte of a range. False if one byte is refused. */
static bool add_range(struct states *s, const struct state_set *from, unsigned low, unsigned high,
		      struct state_set *to)
{
	for (unsigned i = 0; i < from->count; i++) {
		for (unsigned byte = low, class = 256; byte <= high; byte++) {
			struct state *next;

			if (s->a->class_of[byte] == class)
				continue;
			class = s->a->class_of[byte];
			next = state_step(s, from->items[i], (uint8_t)byte);
			if (!next || next == &state_dead || !set_add(to, next))
				return false;
		}
	}
	return true;
}

/* The states after each plain character of several bytes: lead bytes, then the range of the second byte. */
static bool add_wide(struct states *s, const struct state_set *from, struct state_set *to)
{
	static const struct {
		uint8_t lead_low, lead_high, second_low, second_high, more;
	} forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 0}, {0xe0, 0xe0, 0xa0, 0xbf, 1}, {0xe1, 0xec, 0x80, 0xbf, 1},
		     {0xed, 0xed, 0x80, 0x9f, 1}, {0xee, 0xef, 0x80, 0xbf, 1}, {0xf0, 0xf0, 0x90, 0xbf, 2},
		     {0xf1, 0xf3, 0x80, 0xbf, 2}, {0xf4, 0xf4, 0x80, 0x8f, 2}};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct state_set at = {0}, behind = {0};

		if (!add_range(s, from, forms[i].lead_low, forms[i].lead_high, &at) ||
		    !add_range(s, &at, forms[i].second_low, forms[i].second_high, &behind))
			return false;
		for (unsigned more = forms[i].more; more; more--) {
			at = behind;
			behind.count = 0;
			if (!add_range(s, &at, 0x80, 0xbf, &behind))
				return false;
		}
		for (unsigned k = 0; k < behind.count; k++)
			if (!set_add(to, behind.items[k]))
				return false;
	}
	return true;
}

static bool add_plain(struct states *s, struct state *state, struct state_set *to)
{
	struct state_set from = {.items = {state}, .count = 1};

	for (unsigned i = 0; i < s->plain_classes; i++)
		if (!add_range(s, &from, s->a->byte_of[s->plain_class[i]], s->a->byte_of[s->plain_class[i]],
			       to))
			return false;
	return add_wide(s, &from, to);
}

/* One more plain character from each state of the level. States that were reached before are left out. False:
 * a character is refused. */
static bool next_level(struct states *s, struct state_set *level, struct state_set *seen)
{
	struct state_set next = {.count = 0};

	for (unsigned i = 0; i < level->count; i++)
		if (!add_plain(s, level->items[i], &next))
			return false;
	level->count = 0;
	for (unsigned i = 0; i < next.count; i++) {
		bool known = false;

		for (unsigned k = 0; k < seen->count && !known; k++)
			known = seen->items[k] == next.items[i];
		if (known)
			continue;
		level->items[level->count++] = next.items[i];
		/* A long chain of states needs no memory of all of them: only loops need it. */
		if (seen->count < PLAIN_SET)
			seen->items[seen->count++] = next.items[i];
	}
	return true;
}

/* Follows all plain characters level by level, until a level refuses one or reaches no new state. In a string
 * of bounded length the levels are a chain of single states; the next state of the chain goes on at its end.
 */
uint32_t state_plain(struct states *s, struct state *from)
{
	struct state *begin = from->far ? from->far : from, *second;
	struct state_set level = {.items = {begin}, .count = 1}, seen = level;
	uint32_t chars = from->far ? from->far_chars : 0;
	bool chain = true, fine = true;

	if (from->plain >= 0)
		return (uint32_t)from->plain;
	while (fine && chars < PLAIN_CHARS && level.count) {
		struct state_set reached = level;

		fine = next_level(s, &reached, &seen);
		if (!fine)
			break;
		level = reached;
		chain &= level.count == 1;
		chars++;
	}
	from->plain = level.count ? (int32_t)chars : PLAIN_FOREVER;
	second = from->next[s->plain_class[0]];
	if (chain && level.count == 1 && chars > 1 && second && second != &state_dead && second != from) {
		second->far = level.items[0];
		second->far_chars = chars - 1;
	}
	return (uint32_t)from->plain;
}

void states_sweep(struct states *s)
{
	for (size_t i = 0; i < s->bucket_count; i++) {
		struct state **at = &s->buckets[i], *state;

		while ((state = *at)) {
			if (!state->marked) {
				*at = state->chain;
				state_free(s, state);
				s->state_count--;
				continue;
			}
			for (uint32_t k = 0; k < state->count; k++)
				for (uint32_t f = state->configs[k].frame; f && !s->frames[f].marked;
				     f = s->frames[f].parent)
					s->frames[f].marked = true;
			if (state->allowed) {
				s->bytes -=
					sizeof(*state->allowed) + state->allowed->count * sizeof(uint32_t);
				free(state->allowed);
				state->allowed = NULL;
			}
			memset(state->next, 0, s->a->classes * sizeof(state->next[0]));
			state->marked = false;
			state->far = NULL;
			at = &state->chain;
		}
	}
	for (uint32_t i = 1; i < s->frame_count; i++) {
		s->frames[i].used = s->frames[i].marked;
		s->frames[i].marked = false;
	}
	link_frames(s);
	s->start = NULL;
}
