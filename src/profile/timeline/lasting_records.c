/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a ring file, and the records that are never overwritten by events. */
#include "core/text/redact.h"
#include "profile/timeline/build.h"

static void keep_string(struct build *b, const struct ring_string *r)
{
	uint32_t id = r->head.name;

	if (!id || id > RING_STRINGS)
		return;
	if (id >= b->strings) {
		size_t room = id + id / 2 + 64; /* ids count from 1 */
		uint32_t *grown = realloc(b->string, room * sizeof(*grown));

		if (!grown) {
			b->out_of_memory = true;
			return;
		}
		memset(grown + b->strings, 0, (room - b->strings) * sizeof(*grown));
		b->string = grown;
		b->strings = room;
	}
	b->string[id] = build_name(b, r->text);
}

static void keep_device(struct build *b, const struct ring_device *r)
{
	struct timeline_device *d = BUILD_MORE(b, b->t->device, b->t->devices, b->device_room);

	if (!d)
		return;
	*d = (struct timeline_device){
		.process = b->process,
		.id = r->id,
		.name = build_string(b, r->head.name),
		.memory_bytes = r->memory_bytes,
		.bandwidth_bytes = r->bandwidth_bytes,
		.sms = r->sms,
		.clock_khz = r->clock_khz,
		.major = r->major,
		.minor = r->minor,
		.l2_bytes = r->l2_bytes,
		.warps_per_sm = r->warps_per_sm,
		.registers_per_sm = r->registers_per_sm,
		.shared_per_sm = r->shared_per_sm,
		.shared_per_block = r->shared_per_block,
		.threads_per_block = r->threads_per_block,
		.blocks_per_sm = r->blocks_per_sm,
		.registers_per_block = r->registers_per_block,
		.warp = r->warp,
	};
	memcpy(d->uuid, r->uuid, sizeof(d->uuid));
}

static void keep_schema(struct build *b, const struct ring_schema *r)
{
	struct ring_schema_known *s = BUILD_MORE(b, b->schema, b->schemas, b->schema_room);

	if (!s)
		return;
	s->id = r->id;
	s->domain = build_string(b, r->domain);
	s->fields = r->fields;
	memcpy(s->field, r + 1, r->fields * sizeof(s->field[0]));
	for (uint32_t i = 0; i < s->fields; i++)
		s->field[i].name = build_string(b, s->field[i].name);
}

static void keep_context(struct build *b, const struct ring_context *r)
{
	struct ring_context *c = BUILD_MORE(b, b->context, b->contexts, b->context_room);

	if (c)
		*c = *r;
}

static void keep_thread(struct build *b, const struct ring_thread *r)
{
	uint32_t track = build_thread(b, r->thread);

	if (track != TIMELINE_NONE)
		b->t->track[track].name = build_string(b, r->head.name);
}

int build_keep(void *arg, const union ring_any *r)
{
	struct build *b = arg;

	switch ((enum ring_type)r->head.type) {
	case RING_STRING:
		keep_string(b, &r->STRING);
		break;
	case RING_CLOCK:
		clock_map_add(&b->clock, r->CLOCK.before_ns, r->CLOCK.cupti_ns, r->CLOCK.after_ns);
		break;
	case RING_DEVICE:
		keep_device(b, &r->DEVICE);
		break;
	case RING_CONTEXT:
		keep_context(b, &r->CONTEXT);
		break;
	case RING_SCHEMA:
		keep_schema(b, &r->SCHEMA);
		break;
	case RING_THREAD:
		keep_thread(b, &r->THREAD);
		break;
	case RING_COMM:
		build_comm(b, &r->COMM);
		break;
	default:
		break;
	}
	return b->out_of_memory;
}

/* The words of the command, separated by blanks. */
static char *command_text(const struct ring_header *h)
{
	/* Ring files of older versions hold the words without redaction, so secrets are removed here too. A
	 * word may grow. */
	const size_t room = (sizeof(REDACTED) + 1) * (h->command_size + 1u);
	char raw[RING_COMMAND + 1], *text = calloc(1, room);
	struct redact state = {0};
	size_t size = 0;

	memcpy(raw, h->command, h->command_size);
	raw[h->command_size] = '\0';
	for (uint32_t at = 0; text && at < h->command_size; at += (uint32_t)strlen(raw + at) + 1) {
		if (at && size + 1 < room)
			text[size++] = ' ';
		size += redact_word(&state, text + size, room - size, raw + at);
		size = size < room ? size : room - 1;
	}
	for (size_t n = text ? strlen(text) : 0; n && text[n - 1] == ' '; n--)
		text[n - 1] = '\0';
	return text;
}

void build_describe(struct build *b, const struct ring_header *h)
{
	struct timeline_process *p = &b->t->process[b->process];

	p->pid = h->pid;
	p->parent = h->parent;
	p->rank = h->rank;
	p->local_rank = h->local_rank;
	p->world = h->world;
	p->command = command_text(h);
	p->note = *h->note ? strdup(h->note) : NULL;
	p->library = *h->library ? strdup(h->library) : NULL;
	p->cupti_version = h->cupti_version;
	p->driver_version = h->driver_version;
	p->started_ns = h->started_ns;
	p->ended_ns = h->ended_ns;
	p->closed = h->state == RING_CLOSED;
	p->overwritten = h->overwritten;
	p->dropped = h->dropped;
	p->dropped_cupti = h->dropped_cupti;
	p->names_lost = h->strings_lost;
	p->stop = h->stop;
	p->converted = h->converted;
	p->convert_ns = h->converted ? (double)h->convert_ns / (double)h->converted : 0;
	if (!p->command)
		b->out_of_memory = true;
}
