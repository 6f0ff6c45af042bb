/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether the interfaces and ports that NCCL is told to use exist and are up. */
#include "machine/nccl/settings.h"
#include <stdbool.h>
#include <string.h>

/* "mlx5_0:1": a name's prefix or, after "=", a full name; port -1: any. */
struct term {
	char name[64];
	long port;
};

/* Reads the next term of a list. Returns the rest of the list. */
static const char *next_term(const char *p, struct term *t)
{
	size_t n = strcspn(p, ","), colon = strcspn(p, ":,");

	snprintf(t->name, sizeof(t->name), "%.*s", (int)colon, p);
	t->port = p[colon] == ':' ? strtol(p + colon + 1, NULL, 10) : -1;
	p += n;
	return *p ? p + 1 : p;
}

struct port {
	const char *name;
	long number;
	bool up;
};

static bool is_port(const struct port *p, const struct term *t, bool exact)
{
	size_t n = strlen(t->name);

	if (exact ? strcmp(p->name, t->name) != 0 : strncmp(p->name, t->name, n) != 0)
		return false;
	return t->port < 0 || p->number == t->port;
}

/* Lists the facts' network interfaces, or their InfiniBand and RoCE ports. */
static size_t list_ports(struct port *ports, size_t room, const json_t *facts, bool sockets)
{
	const json_t *row, *list = json_object_get(facts, sockets ? "interfaces" : "ports");
	size_t i, count = 0;

	json_array_foreach((json_t *)list, i, row)
	{
		const char *state = json_string_value(json_object_get(row, "state"));
		const char *kind = json_string_value(json_object_get(row, "kind"));
		const char *number = json_string_value(json_object_get(row, "port"));
		struct port p = {
			.name = json_string_value(json_object_get(row, sockets ? "name" : "device"))};

		if (!p.name || count == room ||
		    (!sockets && (!kind || (strcmp(kind, "infiniband") && strcmp(kind, "roce")))))
			continue;
		p.number = number ? strtol(number, NULL, 10) : 1;
		p.up = !state || (sockets ? strcmp(state, "down") != 0 : !strcmp(state, "ACTIVE"));
		ports[count++] = p;
	}
	return count;
}

static bool excluded(const struct port *p, const char *list, bool exact)
{
	struct term t;
	bool hit = false;

	while (*list) {
		list = next_term(list, &t);
		hit = hit || is_port(p, &t, exact);
	}
	return hit;
}

static void one_term(struct text *out, const struct term *t, bool exact, const struct port *ports,
		     size_t count)
{
	bool here = false, up = false;

	for (size_t i = 0; i < count; i++) {
		bool same = is_port(&ports[i], t, exact);

		here = here || same;
		up = up || (same && ports[i].up);
	}
	if (up || !*t->name)
		return;
	text_addf(out, "%s%s", out->size ? ", " : "", t->name);
	if (t->port >= 0)
		text_addf(out, ":%ld", t->port);
	text_add(out, here ? " is down" : " is missing");
}

void nccl_missing(struct text *out, const char *name, const char *value, const json_t *facts)
{
	bool sockets = !strcmp(name, "NCCL_SOCKET_IFNAME"), not, exact;
	struct port ports[256];
	struct term t;
	size_t count, left = 0;

	if (!sockets && strcmp(name, "NCCL_IB_HCA"))
		return;
	if (!json_is_array(json_object_get(facts, sockets ? "interfaces" : "ports")))
		return;
	count = list_ports(ports, sizeof(ports) / sizeof(ports[0]), facts, sockets);
	not = *value == '^';
	value += not ;
	exact = *value == '=';
	value += exact;
	if (!not ) {
		while (*value) {
			value = next_term(value, &t);
			one_term(out, &t, exact, ports, count);
		}
		return;
	}
	for (size_t i = 0; i < count; i++)
		left += ports[i].up && !excluded(&ports[i], value, exact);
	if (count && !left)
		text_add(out, "it excludes every port that is up");
}
