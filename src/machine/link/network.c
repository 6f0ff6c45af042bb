/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/link/network.h"
#include <stdbool.h>
#include <string.h>
#include "core/json/member.h"

enum { FABRIC_COMPLETED = 3 };

struct sum {
	double rate;
	unsigned ports;
	bool untold; /* a port that is up reports no rate */
};

static void add(struct sum *s, const json_t *port)
{
	double rate = json_number_value(json_object_get(port, "rate_gbit"));

	s->ports++;
	s->rate += rate * 1e9 / 8;
	s->untold = s->untold || !(rate > 0);
}

/* NVLink domains that span machines exist with Grace CPUs only. Traffic can then also leave by NVLink. */
static bool nvlinks_lead_out(const json_t *facts)
{
	const json_t *gpus = json_object_get(facts, "gpus"), *gpu;
	size_t i;

	if (strcmp(json_member_text(json_object_get(facts, "system"), "architecture"), "aarch64"))
		return false;
	json_array_foreach((json_t *)gpus, i, gpu)
	{
		const json_t *state = json_object_get(json_object_get(gpu, "facts"), "fabric_state");

		if (json_integer_value(state) == FABRIC_COMPLETED)
			return true;
	}
	return false;
}

void network_of(struct network *out, const json_t *facts)
{
	const json_t *ports = json_object_get(facts, "ports"), *port;
	struct sum rdma = {0}, ethernet = {0};
	size_t i;

	*out = (struct network){0};
	json_array_foreach((json_t *)ports, i, port)
	{
		const char *kind = json_member_text(port, "kind"), *state = json_member_text(port, "state");

		if (json_object_get(port, "function_of"))
			continue;
		if ((!strcmp(kind, "infiniband") || !strcmp(kind, "roce")) && !strcmp(state, "ACTIVE"))
			add(&rdma, port);
		else if (!strcmp(kind, "ethernet") && !strcmp(state, "up"))
			add(&ethernet, port);
	}
	if (rdma.untold || (!rdma.ports && ethernet.untold) || nvlinks_lead_out(facts))
		return;
	if (rdma.rate >= ethernet.rate)
		*out = (struct network){rdma.rate, rdma.ports};
	else
		*out = (struct network){ethernet.rate, ethernet.ports};
}
