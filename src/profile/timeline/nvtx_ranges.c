/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX ranges. Pushes and pops of a thread and domain form nested ranges; starts and ends form ranges of the
 * process. If the begin was overwritten, the end is ignored. */
#include "profile/timeline/build.h"

/* NVTX's numeric types of a payload and of its fields. */
enum { PLAIN_U64 = 1, PLAIN_I64, PLAIN_F64, PLAIN_U32, PLAIN_I32, PLAIN_F32 };
static const struct {
	uint8_t type, bytes;
	char kind; /* 'u' unsigned, 'i' signed, 'f' floating point */
} field_types[] = {
	{2, 1, 'u'},  {3, 2, 'i'},  {4, 2, 'u'},  {5, 4, 'i'},	{6, 4, 'u'},  {7, 8, 'i'},
	{8, 8, 'u'},  {9, 8, 'i'},  {10, 8, 'u'}, {11, 1, 'i'}, {12, 1, 'u'}, {13, 2, 'i'},
	{14, 2, 'u'}, {15, 4, 'i'}, {16, 4, 'u'}, {17, 8, 'i'}, {18, 8, 'u'}, {19, 4, 'f'},
	{20, 8, 'f'}, {22, 8, 'u'}, {43, 4, 'f'}, {44, 8, 'f'},
};

struct sought {
	const struct build *b;
	struct build_open key;
};

static bool is_sought(const void *arg, uint32_t index)
{
	const struct sought *s = arg;
	const struct build_open *o = &s->b->open[index];

	return o->thread == s->key.thread && o->domain == s->key.domain && o->id == s->key.id;
}

/* The entry for these ranges, created if `make` is set and it does not exist. NULL: not found, or out of
 * memory. */
static struct build_open *open_of(struct build *b, uint32_t thread, uint32_t domain, uint64_t id, bool make)
{
	struct sought s = {.b = b, .key = {.thread = id ? 0 : thread, .domain = id ? 0 : domain, .id = id}};
	uint64_t words[2] = {(uint64_t)s.key.thread << 32 | s.key.domain, id}, hash;
	struct build_open *o;
	uint32_t index;

	hash = hash_bytes(words, sizeof(words));
	index = hash_find(&b->open_index, hash, is_sought, &s);
	if (index != TIMELINE_NONE || !make)
		return index == TIMELINE_NONE ? NULL : &b->open[index];
	o = BUILD_MORE(b, b->open, b->opens, b->open_room);
	if (!o)
		return NULL;
	*o = s.key;
	o->event = TIMELINE_NONE;
	if (!hash_add(&b->open_index, hash, (uint32_t)(b->opens - 1)))
		b->out_of_memory = true;
	return o;
}

static void add_value(struct build *b, struct timeline_range *range, struct timeline_value value)
{
	struct timeline_value *v = BUILD_MORE(b, b->t->value, b->t->values, b->value_room);

	if (!v)
		return;
	*v = value;
	range->values++;
}

static void read_number(struct timeline_value *v, const uint8_t *at, unsigned bytes, char kind)
{
	unsigned spare = 64 - 8 * bytes;
	float small;

	v->is_float = kind == 'f';
	if (kind == 'f' && bytes == sizeof(small)) {
		memcpy(&small, at, sizeof(small));
		v->f64 = (double)small;
		return;
	}
	memcpy(&v->u64, at, bytes);
	if (kind == 'i')
		v->u64 = (uint64_t)((int64_t)(v->u64 << spare) >> spare);
}

const struct ring_schema_known *build_schema(const struct build *b, uint64_t id, uint32_t domain)
{
	for (size_t i = 0; i < b->schemas; i++)
		if (b->schema[i].id == id && (!b->schema[i].domain || b->schema[i].domain == domain))
			return &b->schema[i];
	return NULL;
}

bool build_field(struct timeline_value *v, const struct ring_field *f, const uint8_t *data, size_t size)
{
	*v = (struct timeline_value){.name = f->name};
	for (size_t k = 0; k < sizeof(field_types) / sizeof(field_types[0]); k++)
		if (field_types[k].type == f->type && f->offset <= size &&
		    field_types[k].bytes <= size - f->offset) {
			read_number(v, data + f->offset, field_types[k].bytes, field_types[k].kind);
			return true;
		}
	return false;
}

static void add_fields(struct build *b, struct timeline_range *range, const struct ring_schema_known *schema,
		       const uint8_t *data, size_t size)
{
	struct timeline_value v;

	for (uint32_t i = 0; i < schema->fields; i++)
		if (build_field(&v, &schema->field[i], data, size))
			add_value(b, range, v);
}

/* Keeps the values of a range together: before new ones are added, its existing values move to the end of the
 * array. */
static void move_values(struct build *b, struct timeline_range *range)
{
	uint32_t first = range->value_first, count = range->values;

	range->value_first = (uint32_t)b->t->values;
	range->values = 0;
	for (uint32_t i = 0; i < count; i++)
		add_value(b, range, b->t->value[first + i]);
}

static void add_payload(struct build *b, struct timeline_range *range, const struct ring_range *r)
{
	static const struct {
		uint8_t bytes;
		char kind;
	} plain[] = {{8, 'u'}, {8, 'i'}, {8, 'f'}, {4, 'u'}, {4, 'i'}, {4, 'f'}};
	const uint8_t *data = (const uint8_t *)(r + 1);
	struct timeline_value v = {0};
	uint64_t schema;

	const struct ring_schema_known *known;

	if (r->payload_size < 8 || !r->payload_kind)
		return;
	move_values(b, range);
	if (r->payload_kind <= sizeof(plain) / sizeof(plain[0])) {
		read_number(&v, data, plain[r->payload_kind - 1].bytes, plain[r->payload_kind - 1].kind);
		add_value(b, range, v);
		return;
	}
	memcpy(&schema, data, sizeof(schema));
	known = r->payload_kind == RING_PAYLOAD_SCHEMA ? build_schema(b, schema, range->domain) : NULL;
	if (known)
		add_fields(b, range, known, data + 8, r->payload_size - 8u);
}

/* Index of the event, or TIMELINE_NONE. */
static uint32_t begin(struct build *b, const struct ring_range *r)
{
	struct timeline_track thread = {.process = b->process, .thread = r->thread};
	bool mark = r->kind == RING_MARK;
	struct timeline_event *e = build_event(b, mark ? TIMELINE_MARK : TIMELINE_RANGE, r->at_ns, r->at_ns);
	struct timeline_range *range;
	uint32_t *below;

	if (!e)
		return TIMELINE_NONE;
	e->name = build_string(b, r->head.name);
	e->track = build_track(b, &thread);
	range = BUILD_MORE(b, b->t->range, b->t->ranges, b->range_room);
	below = BUILD_MORE(b, b->below, b->belows, b->below_room);
	if (!range || !below)
		return TIMELINE_NONE;
	*below = TIMELINE_NONE;
	e->detail = (uint32_t)(b->t->ranges - 1);
	range->domain = build_string(b, r->domain);
	range->category = r->category;
	range->color = r->color;
	range->cut = !mark;
	add_payload(b, range, r);
	build_comm_range(b, r);
	return (uint32_t)(b->t->events - 1);
}

static void end(struct build *b, struct build_open *o, const struct ring_range *r)
{
	struct timeline_event *e;

	if (!o || o->event == TIMELINE_NONE) {
		b->t->process[b->process].odd++;
		return;
	}
	e = &b->t->event[o->event];
	e->end_ns = r->at_ns > e->start_ns ? r->at_ns : e->start_ns;
	b->t->range[e->detail].cut = false;
	add_payload(b, &b->t->range[e->detail], r);
	o->event = b->below[e->detail];
}

void build_range(struct build *b, const union ring_any *any)
{
	const struct ring_range *r = &any->RANGE;
	bool opens = r->kind == RING_PUSH || r->kind == RING_START;
	bool has_id = r->kind == RING_START || r->kind == RING_END;
	struct build_open *o;
	uint32_t index;

	if (r->kind == RING_MARK) {
		begin(b, r);
		return;
	}
	o = open_of(b, r->thread, r->domain, has_id ? r->id : 0, opens);
	if (!opens) {
		end(b, o, r);
		return;
	}
	index = o ? begin(b, r) : TIMELINE_NONE;
	if (index == TIMELINE_NONE)
		return;
	b->below[b->t->event[index].detail] = o->event;
	o->event = index;
}

void build_ranges_end(struct build *b, uint64_t end_ns)
{
	for (size_t i = 0; i < b->opens; i++)
		for (uint32_t at = b->open[i].event; at != TIMELINE_NONE;
		     at = b->below[b->t->event[at].detail])
			if (b->t->event[at].end_ns < end_ns)
				b->t->event[at].end_ns = end_ns;
}
