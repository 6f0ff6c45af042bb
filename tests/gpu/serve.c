/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * For peers (tests/oracles/peer_memory.py): reads commands as lines, answers each with one line, so that a peer's work and
 * ours alternate on one device in one run.
 *   OP CALLS                                                  the operation's first shape
 *   OP CALLS RUNG THREADS PER_SM TILE STAGES EVICT RESIDENT   one shape (RUNG 11: bulk)
 *   driver_copy CALLS | driver_set CALLS | h2d CALLS | d2h CALLS
 * Answer: "ns NANOSECONDS bytes BYTES" a call, or "error TEXT". A line "streams BYTES" comes first.
 */
/* clang-format on */
#include "cases.h"
#include "time_memory.h"
#include <inttypes.h>

#define LINK_BYTES ((uint64_t)1 << 30)

static bool find_op(const char *word, enum move_op *op)
{
	for (int i = 0; i < MOVE_OP_COUNT; i++) {
		if (!strcmp(word, move_op_name((enum move_op)i))) {
			*op = (enum move_op)i;
			return true;
		}
	}
	return false;
}

static enum status answer(struct streams *s, struct transfer *t, const char *command, double *ns,
			  uint64_t *bytes, struct error *err)
{
	struct move_shape shape = {0};
	unsigned calls = 0, rung = 0, count;
	char word[32];
	enum move_op op;
	int words =
		sscanf(command, "%31s %u %u %u %u %u %u %u %u", word, &calls, &rung, &shape.threads,
		       &shape.per_sm, &shape.tile_bytes, &shape.stages, &shape.evict_first, &shape.resident);

	if (words < 2 || calls < 1 || calls > 1000)
		return error_set(err, STATUS_BAD_INPUT, "not a command: %.60s", command);
	if (!strcmp(word, "h2d") || !strcmp(word, "d2h")) {
		*bytes = t->bytes;
		t->to_device = word[0] == 'h';
		return transfer_time(t, calls, ns, err);
	}
	if (!strcmp(word, "driver_copy") || !strcmp(word, "driver_set")) {
		*bytes = s->kit->bytes * (word[7] == 'c' ? 2 : 1);
		return streams_time_driver(s, word[7] == 's', calls, ns, err);
	}
	if (!find_op(word, &op) || (words > 2 && (words < 9 || rung < MOVE_V1 || rung > MOVE_BULK)))
		return error_set(err, STATUS_BAD_INPUT, "not a command: %.60s", command);
	shape.rung = (enum move_rung)rung;
	*bytes = move_bytes(op, s->arrays.count);
	return streams_time(s, op, words > 2 ? &shape : &move_shapes(s->kit->device, op, &count)[0], calls,
			    ns, err);
}

int kit_serve(struct kit *k)
{
	struct error err = {0};
	struct transfer t = {.kit = k, .bytes = LINK_BYTES};
	struct streams s;
	char command[128];
	enum status st = streams_make(k, &s, &err);

	if (!st)
		st = transfer_open(&t, &err);
	if (st)
		printf("error %s\n", err.text);
	else
		printf("streams %" PRIu64 "\n", k->bytes);
	fflush(stdout);
	while (!st && fgets(command, sizeof(command), stdin)) {
		double ns = 0;
		uint64_t bytes = 0;

		error_clear(&err);
		if (answer(&s, &t, command, &ns, &bytes, &err))
			printf("error %s\n", err.text);
		else
			printf("ns %.1f bytes %" PRIu64 "\n", ns, bytes);
		fflush(stdout);
	}
	transfer_close(&t);
	streams_free(k, &s);
	return st ? 1 : 0;
}
