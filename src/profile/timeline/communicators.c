/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators, from the payloads that NCCL attaches to the ends of ranges of calls that create them (NCCL's
 * nvtx_payload_schemas.h). ncclCommSplit reports the ranks of the parent. ncclCommShrink does so too, and
 * reports how many ranks it removes. A non-blocking split ends before these are known. Then the begins of the
 * ranges of calls that destroy or abort the communicator report them. */
#include "profile/timeline/build.h"

enum told { COMM_ID, COMM_PARENT, COMM_RANKS, COMM_DEVICES, COMM_RANK, COMM_COLOR, COMM_EXCLUDED, COMM_TOLD };
static const char *const told_names[COMM_TOLD] = {
	[COMM_ID] = "NCCL communicator ID",
	[COMM_PARENT] = "Parent NCCL communicator ID",
	[COMM_RANKS] = "No. of ranks",
	[COMM_DEVICES] = "No. of devices",
	[COMM_RANK] = "Rank",
	[COMM_COLOR] = "Color",
	[COMM_EXCLUDED] = "num_exclude",
};

static uint32_t count_of(uint64_t told)
{
	return told <= INT32_MAX ? (uint32_t)told : 0;
}

static void add_comm(struct build *b, const struct ring_schema_known *schema, const uint8_t *data,
		     size_t size)
{
	uint64_t value[COMM_TOLD] = {0};
	bool has[COMM_TOLD] = {false};
	struct timeline_comm *c;

	for (uint32_t i = 0; schema && i < schema->fields; i++) {
		const char *name = timeline_name(b->t, schema->field[i].name);
		struct timeline_value v;

		for (unsigned k = 0; k < COMM_TOLD; k++)
			if (!strcmp(name, told_names[k]) && build_field(&v, &schema->field[i], data, size)) {
				value[k] = v.u64;
				has[k] = true;
			}
	}
	if (!value[COMM_ID] || (!has[COMM_RANKS] && !has[COMM_DEVICES]))
		return;
	c = BUILD_MORE(b, b->t->comm, b->t->comms, b->comm_room);
	if (!c)
		return;
	*c = (struct timeline_comm){.process = b->process,
				    .split = has[COMM_COLOR],
				    .id = value[COMM_ID],
				    .parent = value[COMM_PARENT],
				    .ranks = count_of(value[has[COMM_RANKS] ? COMM_RANKS : COMM_DEVICES]),
				    .rank = has[COMM_RANK] && !has[COMM_COLOR] ? count_of(value[COMM_RANK])
									       : TIMELINE_NONE};
	if (value[COMM_EXCLUDED] < c->ranks)
		c->ranks -= count_of(value[COMM_EXCLUDED]);
}

void build_comm(struct build *b, const struct ring_comm *r)
{
	add_comm(b, build_schema(b, r->schema, build_string(b, r->domain)), (const uint8_t *)(r + 1),
		 r->size);
}

void build_comm_range(struct build *b, const struct ring_range *r)
{
	const uint8_t *data = (const uint8_t *)(r + 1);
	uint32_t domain = build_string(b, r->domain);
	uint64_t schema;

	if (r->payload_kind != RING_PAYLOAD_SCHEMA || r->payload_size < sizeof(schema) ||
	    strcmp(timeline_name(b->t, domain), "NCCL") ||
	    strncmp(timeline_name(b->t, build_string(b, r->head.name)), "ncclComm", 8))
		return;
	memcpy(&schema, data, sizeof(schema));
	add_comm(b, build_schema(b, schema, domain), data + sizeof(schema), r->payload_size - sizeof(schema));
}
