/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/timeline/ring_file.h"
#include <errno.h>

static const uint16_t sizes[RING_TYPE_COUNT] = {
#define X(name, type) [RING_##name] = sizeof(struct type),
	RING_TYPES(X)
#undef X
};

static int by_sequence(const void *a_, const void *b_)
{
	const struct ring_place *a = a_, *b = b_;

	return (a->segment.sequence > b->segment.sequence) - (a->segment.sequence < b->segment.sequence);
}

/* Collects the segments that hold records, and limits their sizes to the bytes in the file. */
static enum status take_places(struct ring_file *f, struct error *err)
{
	const struct ring_header *h = &f->header;

	f->place = calloc(h->segments + 1, sizeof(*f->place));
	if (!f->place)
		return error_errno(err, ENOMEM, "cannot read the %u segments of a ring file", h->segments);
	for (uint32_t i = 0; i < h->segments; i++) {
		struct ring_place *p = &f->place[f->places];
		uint64_t there;

		memcpy(&p->segment, f->data + h->header_size + i * sizeof(p->segment), sizeof(p->segment));
		p->at = h->segments_at + (uint64_t)i * RING_SEGMENT;
		if (p->segment.kind != RING_KEPT && p->segment.kind != RING_EVENTS)
			continue;
		if (p->segment.used > RING_SEGMENT) {
			f->cut_bytes += RING_SEGMENT;
			continue;
		}
		there = p->at < f->size ? f->size - p->at : 0;
		if (p->segment.used > there) {
			f->cut_bytes += p->segment.used - there;
			p->segment.used = there;
		}
		f->places++;
	}
	qsort(f->place, f->places, sizeof(*f->place), by_sequence);
	return STATUS_OK;
}

enum status ring_file_open(struct ring_file *f, const char *name, const void *data, size_t size,
			   struct error *err)
{
	struct ring_header *h = &f->header;
	uint64_t table;

	*f = (struct ring_file){.data = data, .size = size};
	if (size < sizeof(*h) || memcmp(data, RING_MAGIC, sizeof(h->magic)))
		return error_set(err, STATUS_BAD_INPUT, "%s is not a ring file, or its header is incomplete",
				 name);
	memcpy(h, data, sizeof(*h));
	if (h->version != RING_VERSION || h->header_size != sizeof(*h) || h->segment_size != RING_SEGMENT)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s is a ring file of version %u, but this program reads version %d only",
				 name, h->version, RING_VERSION);
	table = h->header_size + (uint64_t)h->segments * sizeof(struct ring_segment);
	if (h->segments_max > RING_SEGMENTS_MAX || h->segments > h->segments_max ||
	    h->segments_at != ring_segments_at(h->segments_max) || table > size)
		return error_set(err, STATUS_BAD_INPUT, "%s has an invalid segment table", name);
	if (h->command_size > RING_COMMAND)
		h->command_size = RING_COMMAND;
	h->command[RING_COMMAND - 1] = h->note[RING_NOTE - 1] = h->library[RING_NOTE - 1] = '\0';
	return take_places(f, err);
}

void ring_file_release(struct ring_file *f)
{
	free(f->place);
	*f = (struct ring_file){0};
}

/* Checks the part of the record after its fixed fields. */
static bool is_sound(const union ring_any *r)
{
	size_t more = r->head.size - sizes[r->head.type];

	switch (r->head.type) {
	case RING_STRING:
		return more && memchr(r->STRING.text, '\0', more);
	case RING_SCHEMA:
		return r->SCHEMA.fields <= RING_SCHEMA_FIELDS &&
		       more == r->SCHEMA.fields * sizeof(struct ring_field);
	case RING_RANGE:
		return r->RANGE.payload_size <= 8 + RING_PAYLOAD_MAX && r->RANGE.payload_size <= more &&
		       r->RANGE.kind <= RING_MARK;
	case RING_COMM:
		return r->COMM.size <= RING_PAYLOAD_MAX && r->COMM.size <= more;
	default:
		return !more;
	}
}

static int visit_segment(struct ring_file *f, const struct ring_place *place,
			 int (*visit)(void *arg, const union ring_any *r), void *arg)
{
	const uint8_t *data = f->data + place->at;
	uint64_t used = place->segment.used, at = 0;
	union ring_any r;
	int answer;

	while (at + sizeof(r.head) <= used) {
		memcpy(&r.head, data + at, sizeof(r.head));
		if (r.head.size < sizeof(r.head) || r.head.size % 8 || r.head.size > used - at ||
		    r.head.size > sizeof(r))
			break;
		memcpy(&r, data + at, r.head.size);
		at += r.head.size;
		if (!r.head.type || r.head.type >= RING_TYPE_COUNT) {
			f->unknown++;
			continue;
		}
		if (r.head.size < sizes[r.head.type] || !is_sound(&r)) {
			at -= r.head.size;
			break;
		}
		answer = visit(arg, &r);
		if (answer)
			return answer;
	}
	f->cut_bytes += used - at;
	return 0;
}

int ring_file_visit(struct ring_file *f, enum ring_segment_kind kind,
		    int (*visit)(void *arg, const union ring_any *r), void *arg)
{
	int answer = 0;

	for (uint32_t i = 0; !answer && i < f->places; i++)
		if (f->place[i].segment.kind == (uint32_t)kind)
			answer = visit_segment(f, &f->place[i], visit, arg);
	return answer;
}
