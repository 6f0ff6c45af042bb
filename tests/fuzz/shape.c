/* SPDX-License-Identifier: Apache-2.0 */
/* Any JSON as rank 0's shape of a team, the team that a journal carries of it, and any as what ranks said of themselves:
 * refused, or every rank is on a node. */
#include "fuzz.h"

#include "team/control/internal.h"

enum { SIZE = 4 };

static void check(struct team_shape *s, const json_t *j)
{
	unsigned ranks = 0;

	FUZZ_CHECK(s->size == SIZE && s->nodes && s->nodes <= SIZE);
	for (unsigned r = 0; r < SIZE; r++) {
		FUZZ_CHECK(s->rank[r].node < s->nodes && s->rank[r].gpu_count <= CONTROL_GPUS);
		json_decref(control_team_json(s, r, true));
	}
	for (unsigned n = 0; n < s->nodes; n++)
		ranks += s->node[n].ranks;
	FUZZ_CHECK(ranks == SIZE);
	shape_clocks_take(s, j);
	json_decref(shape_json(s));
}

static void take(const json_t *j)
{
	struct team_shape s = {0};
	struct error err = {0};

	if (!shape_take(&s, SIZE, j, &err)) {
		check(&s, j);
		shape_release(&s);
	}
}

/* As rank 0 hears it from each. */
static void said(json_t *j)
{
	struct peer peer[SIZE] = {0};
	struct control c = {.rank = 0, .size = SIZE, .peer = peer, .peers = SIZE};
	json_t *all[SIZE];
	struct error err = {0};

	for (unsigned r = 0; r < SIZE; r++) {
		peer[r].rank = r;
		peer[r].here = true;
		all[r] = json_is_array(j) ? json_array_get(j, r) : j;
	}
	if (!shape_make(&c, all, &err))
		check(&c.shape, j);
	shape_release(&c.shape); /* control_free does it, whatever came of it */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *j = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct error err = {0};

	if (!j)
		return 0;
	take(j);
	said(j);
	control_error_from(&err, j);
	FUZZ_CHECK(memchr(err.text, 0, sizeof(err.text)));
	json_decref(j);
	return 0;
}
