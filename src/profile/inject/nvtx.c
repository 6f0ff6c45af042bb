/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/inject/nvtx.h"
#include <sys/syscall.h>
#include <unistd.h>
#include "profile/inject/inject.h"

enum { TEXT = 1024 };
/* NVTX's first id for tools; programs choose ids below it. */
#define SCHEMA_ID_FIRST (UINT64_C(1) << 32)

/* A domain or a registered string, with its text. The handle survives a fork; ids of the ring file do not. */
struct named {
	uint32_t pid, id; /* the id is valid in the file of this process only */
	char text[];
};

static uint64_t last_id = 1;

static uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* Converts to UTF-8, as much as fits. */
static void narrow(char out[TEXT], const wchar_t *wide)
{
	size_t n = 0;

	for (; wide && *wide && n + 5 < TEXT; wide++) {
		uint32_t c = (uint32_t)*wide;

		if (c < 0x80) {
			out[n++] = (char)c;
		} else if (c < 0x800) {
			out[n++] = (char)(0xc0 | c >> 6);
			out[n++] = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			out[n++] = (char)(0xe0 | c >> 12);
			out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
			out[n++] = (char)(0x80 | (c & 0x3f));
		} else {
			out[n++] = (char)(0xf0 | (c >> 18 & 7));
			out[n++] = (char)(0x80 | (c >> 12 & 0x3f));
			out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
			out[n++] = (char)(0x80 | (c & 0x3f));
		}
	}
	out[n] = '\0';
}

static void *named_create(const char *text)
{
	size_t size = text ? strnlen(text, RING_STRING_MAX) : 0;
	struct named *n = calloc(1, sizeof(*n) + size + 1);

	if (n && size)
		memcpy(n->text, text, size);
	return n;
}

static uint32_t named_id(struct writer *w, struct named *n)
{
	if (!n)
		return 0;
	if (!n->id || n->pid != w->header->pid) {
		n->id = writer_string(w, n->text);
		n->pid = w->header->pid;
	}
	return n->id;
}

static uint32_t text_id(struct writer *w, const struct nvtx_attributes *a)
{
	char text[TEXT];

	switch (a->text_type) {
	case NVTX_TEXT_ASCII:
		return writer_string(w, a->text.ascii);
	case NVTX_TEXT_WIDE:
		narrow(text, a->text.wide);
		return writer_string(w, text);
	case NVTX_TEXT_REGISTERED:
		return named_id(w, (struct named *)(uintptr_t)a->text.registered);
	default:
		return 0;
	}
}

struct range_record {
	struct ring_range range;
	uint64_t payload[1 + RING_PAYLOAD_MAX / 8];
};

static void set_payload(struct range_record *r, const struct nvtx_payload *p)
{
	if (!p || !p->data || !p->size || p->size > RING_PAYLOAD_MAX)
		return;
	r->range.payload_kind = RING_PAYLOAD_SCHEMA;
	r->range.payload_size = (uint16_t)(8 + p->size);
	r->payload[0] = p->schema;
	memcpy(&r->payload[1], p->data, p->size);
}

static void set_attributes(struct range_record *r, struct writer *w, const struct nvtx_attributes *a)
{
	r->range.head.name = text_id(w, a);
	r->range.category = a->category;
	r->range.color = a->color_type ? a->color : 0;
	if (a->payload_type > 0 && a->payload_type <= NVTX_PAYLOAD_FLOAT) {
		r->range.payload_kind = (uint8_t)a->payload_type;
		r->range.payload_size = 8;
		r->payload[0] = a->payload;
	} else if (a->payload_type == NVTX_PAYLOAD_EXT && a->payload_count >= 1) {
		set_payload(r, (const struct nvtx_payload *)(uintptr_t)a->payload);
	}
}

/* Records an event with attributes `a`, or `text`, or neither. Returns the id of the range, for a start. */
static uint64_t emit(enum ring_range_kind kind, void *domain, const struct nvtx_attributes *a,
		     const char *text, uint64_t id)
{
	struct range_record r = {.range = {.head = {.type = RING_RANGE}, .kind = (uint8_t)kind}};
	struct writer *w = inject_writer();

	if (!w->open)
		return id;
	r.range.id = id;
	r.range.thread = thread_id();
	r.range.domain = named_id(w, domain);
	if (a)
		set_attributes(&r, w, a);
	else
		r.range.head.name = writer_string(w, text);
	r.range.head.size = (uint16_t)((sizeof(r.range) + r.range.payload_size + 7) & ~7u);
	r.range.at_ns = writer_now_ns();
	writer_add(w, &r);
	return id;
}

static uint64_t new_id(void)
{
	return __atomic_fetch_add(&last_id, 1, __ATOMIC_RELAXED);
}

/* The functions of NVTX, in its order. A push returns its level, on which no program can rely; here it is
 * always 0. */

static void MarkEx(const struct nvtx_attributes *a)
{
	emit(RING_MARK, NULL, a, NULL, 0);
}

static void MarkA(const char *text)
{
	emit(RING_MARK, NULL, NULL, text, 0);
}

static void MarkW(const wchar_t *wide)
{
	char text[TEXT];

	narrow(text, wide);
	emit(RING_MARK, NULL, NULL, text, 0);
}

static uint64_t RangeStartEx(const struct nvtx_attributes *a)
{
	return emit(RING_START, NULL, a, NULL, new_id());
}

static uint64_t RangeStartA(const char *text)
{
	return emit(RING_START, NULL, NULL, text, new_id());
}

static uint64_t RangeStartW(const wchar_t *wide)
{
	char text[TEXT];

	narrow(text, wide);
	return emit(RING_START, NULL, NULL, text, new_id());
}

static void RangeEnd(uint64_t id)
{
	emit(RING_END, NULL, NULL, NULL, id);
}

static int RangePushEx(const struct nvtx_attributes *a)
{
	emit(RING_PUSH, NULL, a, NULL, 0);
	return 0;
}

static int RangePushA(const char *text)
{
	emit(RING_PUSH, NULL, NULL, text, 0);
	return 0;
}

static int RangePushW(const wchar_t *wide)
{
	char text[TEXT];

	narrow(text, wide);
	emit(RING_PUSH, NULL, NULL, text, 0);
	return 0;
}

static int RangePop(void)
{
	emit(RING_POP, NULL, NULL, NULL, 0);
	return 0;
}

static void NameOsThreadA(uint32_t thread, const char *text)
{
	struct writer *w = inject_writer();
	struct ring_thread out = {.head = {.type = RING_THREAD, .size = sizeof(out)}, .thread = thread};

	if (!w->open)
		return;
	out.head.name = writer_string(w, text);
	writer_add(w, &out);
}

static void DomainMarkEx(void *domain, const struct nvtx_attributes *a)
{
	emit(RING_MARK, domain, a, NULL, 0);
}

static uint64_t DomainRangeStartEx(void *domain, const struct nvtx_attributes *a)
{
	return emit(RING_START, domain, a, NULL, new_id());
}

static void DomainRangeEnd(void *domain, uint64_t id)
{
	emit(RING_END, domain, NULL, NULL, id);
}

static int DomainRangePushEx(void *domain, const struct nvtx_attributes *a)
{
	emit(RING_PUSH, domain, a, NULL, 0);
	return 0;
}

static int DomainRangePop(void *domain)
{
	emit(RING_POP, domain, NULL, NULL, 0);
	return 0;
}

static void *DomainRegisterStringA(void *domain, const char *text)
{
	(void)domain;
	return named_create(text);
}

static void *DomainRegisterStringW(void *domain, const wchar_t *wide)
{
	char text[TEXT];

	(void)domain;
	narrow(text, wide);
	return named_create(text);
}

static void *DomainCreateA(const char *text)
{
	return named_create(text);
}

static void *DomainCreateW(const wchar_t *wide)
{
	char text[TEXT];

	narrow(text, wide);
	return named_create(text);
}

/* Saves the schema so that the reader can name the numbers of a payload. */
static uint64_t PayloadSchemaRegister(void *domain, const struct nvtx_schema *s)
{
	static uint64_t last = SCHEMA_ID_FIRST;
	struct {
		struct ring_schema schema;
		struct ring_field field[RING_SCHEMA_FIELDS];
	} out = {.schema = {.head = {.type = RING_SCHEMA}}};
	struct writer *w = inject_writer();
	size_t count = s && s->mask & NVTX_SCHEMA_HAS_ENTRIES && s->entries ? s->count : 0;

	out.schema.id =
		s && s->mask & NVTX_SCHEMA_HAS_ID ? s->id : __atomic_fetch_add(&last, 1, __ATOMIC_RELAXED);
	if (!w->open || !s)
		return out.schema.id;
	if (count > RING_SCHEMA_FIELDS)
		count = RING_SCHEMA_FIELDS;
	for (size_t i = 0; i < count; i++)
		out.field[i] = (struct ring_field){.type = (uint32_t)s->entries[i].type,
						   .offset = (uint32_t)s->entries[i].offset,
						   .name = writer_string(w, s->entries[i].name)};
	out.schema.head.name = s->mask & NVTX_SCHEMA_HAS_NAME ? writer_string(w, s->name) : 0;
	out.schema.domain = named_id(w, domain);
	out.schema.fields = (uint32_t)count;
	out.schema.head.size = (uint16_t)(sizeof(out.schema) + count * sizeof(out.field[0]));
	writer_add(w, &out);
	return out.schema.id;
}

static int RangePushPayload(void *domain, const struct nvtx_payload *p, size_t count)
{
	struct nvtx_attributes a = {.payload_type = NVTX_PAYLOAD_EXT,
				    .payload_count = count ? 1 : 0,
				    .payload = (uint64_t)(uintptr_t)p};

	emit(RING_PUSH, domain, &a, NULL, 0);
	return 0;
}

static bool is_nccl(const struct named *domain)
{
	return domain && !strcmp(domain->text, "NCCL");
}

static void keep_comm(void *domain, const struct nvtx_payload *p)
{
	struct {
		struct ring_comm comm;
		uint64_t payload[RING_PAYLOAD_MAX / 8];
	} out = {.comm = {.head = {.type = RING_COMM}, .schema = p->schema, .size = (uint32_t)p->size}};
	struct writer *w = inject_writer();

	if (!w->open || !p->data || !p->size || p->size > RING_PAYLOAD_MAX)
		return;
	out.comm.domain = named_id(w, domain);
	out.comm.head.size = (uint16_t)((sizeof(out.comm) + p->size + 7) & ~(size_t)7);
	memcpy(out.payload, p->data, p->size);
	writer_add(w, &out);
}

static int RangePopPayload(void *domain, const struct nvtx_payload *p, size_t count)
{
	struct nvtx_attributes a = {.payload_type = NVTX_PAYLOAD_EXT,
				    .payload_count = count ? 1 : 0,
				    .payload = (uint64_t)(uintptr_t)p};

	emit(RING_POP, domain, &a, NULL, 0);
	if (p && count && is_nccl(domain))
		keep_comm(domain, p);
	return 0;
}

struct slot {
	unsigned index;
	nvtx_function *function;
};

static bool fill(const struct nvtx_callbacks *c, int module, const struct slot *slots, size_t count)
{
	nvtx_function ***places = NULL;
	unsigned size = 0;

	if (!c->table_of(module, &places, &size) || !places)
		return false;
	for (size_t i = 0; i < count; i++)
		if (slots[i].index < size && places[slots[i].index])
			*places[slots[i].index] = slots[i].function;
	return true;
}

int nvtx_attach(nvtx_export *tables)
{
#define X(name, index) {index, (nvtx_function *)name},
	static const struct slot core[] = {NVTX_CORE_SLOTS(X)}, core2[] = {NVTX_CORE2_SLOTS(X)};
#undef X
	const struct nvtx_callbacks *c = tables ? tables(NVTX_TABLE_CALLBACKS) : NULL;
	bool any;

	if (!c || c->size < sizeof(*c) || !c->table_of)
		return 0;
	any = fill(c, NVTX_MODULE_CORE, core, sizeof(core) / sizeof(core[0]));
	any |= fill(c, NVTX_MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
	return any;
}

int nvtx_attach_payload(struct nvtx_module *module)
{
#define X(name, index) {index, (nvtx_function *)name},
	static const struct slot slots[] = {NVTX_PAYLOAD_SLOTS(X)};
#undef X

	if (!module || module->module != NVTX_PAYLOAD_MODULE || !module->segment_count || !module->segments)
		return 0;
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (slots[i].index < module->segments[0].count)
			module->segments[0].slots[slots[i].index] = (intptr_t)slots[i].function;
	return 1;
}
