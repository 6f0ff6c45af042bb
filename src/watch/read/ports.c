/* SPDX-License-Identifier: Apache-2.0 */
/* InfiniBand and RoCE ports. A process of its own, because an adapter's firmware may be slow. */
#include <jansson.h>
#include <unistd.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "machine/watch/watch.h"
#include "watch/read/out.h"
#include "watch/read/reader.h"

enum { PORTS_MAX = 64, ERRORS_MAX = 20 };

struct port {
	char name[80]; /* DEVICE/PORT */
	uint32_t e;
	bool seen;
	struct {
		char name[48];
		uint32_t e;
	} error[ERRORS_MAX];
	unsigned errors;
};
struct ports {
	struct watch_out out;
	struct port port[PORTS_MAX];
	unsigned count;
};

static const char *text(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

static struct port *port_of(struct ports *p, const json_t *j)
{
	char name[80];
	unsigned i = 0;

	snprintf(name, sizeof(name), "%.60s/%.15s", text(j, "device"), text(j, "port"));
	while (i < p->count && strcmp(p->port[i].name, name))
		i++;
	if (i == PORTS_MAX)
		return NULL;
	if (i == p->count) {
		p->port[p->count++] = (struct port){0};
		text_copy(p->port[i].name, sizeof(p->port[i].name), name);
		p->port[i].e = out_entity(&p->out, METRIC_SCOPE_PORT, OUT_NONE, "device", text(j, "device"),
					  "port", text(j, "port"), "kind", text(j, "kind"), "interface",
					  text(j, "interface"), NULL);
	}
	return &p->port[i];
}

static void set_number(struct ports *p, uint32_t e, enum catalogue row, const json_t *number, double scale)
{
	if (json_is_number(number))
		out_set(&p->out, e, row, scale * json_number_value(number));
	else
		out_absent(&p->out, e, row, "the adapter does not have it");
}

static void set_errors(struct ports *p, struct port *port, const json_t *j)
{
	const char *name;
	json_t *count;

	json_object_foreach(json_object_get(j, "errors"), name, count)
	{
		unsigned i = 0;

		while (i < port->errors && strcmp(port->error[i].name, name))
			i++;
		if (i == ERRORS_MAX)
			continue;
		if (i == port->errors) {
			port->errors++;
			text_copy(port->error[i].name, sizeof(port->error[i].name), name);
			port->error[i].e =
				out_entity(&p->out, METRIC_SCOPE_PORT_ERROR, port->e, "device",
					   text(j, "device"), "port", text(j, "port"), "error", name, NULL);
		}
		set_number(p, port->error[i].e, CATALOGUE_PORT_ERRORS, count, 1);
	}
}

static void take(struct ports *p, const json_t *j, bool slow)
{
	const json_t *counters = json_object_get(j, "counters");
	struct port *port = text(j, "device") && text(j, "port") ? port_of(p, j) : NULL;
	json_int_t t_ns = json_integer_value(json_object_get(j, "t_ns"));

	if (!port)
		return;
	port->seen = true;
	if (text(j, "state"))
		out_set(&p->out, port->e, CATALOGUE_PORT_UP, !strcmp(text(j, "state"), "ACTIVE"));
	set_number(p, port->e, CATALOGUE_PORT_RATE, json_object_get(j, "rate_gbit"), 1e9 / 8);
	set_number(p, port->e, CATALOGUE_PORT_TX, json_object_get(counters, "tx_bytes"), 1);
	set_number(p, port->e, CATALOGUE_PORT_RX, json_object_get(counters, "rx_bytes"), 1);
	if (slow)
		set_errors(p, port, j);
	out_end(&p->out, port->e, (uint64_t)t_ns, slow);
}

static void remove_unseen(struct ports *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		if (p->port[i].seen) {
			p->port[i].seen = false;
			continue;
		}
		out_gone(&p->out, p->port[i].e);
		p->port[i] = p->port[--p->count];
		i--;
	}
}

int reader_ports(const struct reader_spec *spec)
{
	struct ports *p = calloc(1, sizeof(*p));
	struct reader_rounds rounds = {0};
	uint32_t self;

	if (!p)
		return 1;
	out_init(&p->out, STDOUT_FILENO);
	self = reader_declare(&p->out, "ports");
	while (reader_wait(&rounds, spec)) {
		/* a machine without ports is looked at for new ones in SLOW rounds only */
		json_t *answer = p->count || rounds.slow ? watch_ib_read(spec->sys) : NULL, *port;
		uint64_t t_ns = clock_now_ns(clock_monotonic());
		size_t i;

		json_array_foreach(json_object_get(answer, "ports"), i, port) take(p, port, rounds.slow);
		json_decref(answer);
		remove_unseen(p);
		if (rounds.slow) {
			reader_cpu(&p->out, self);
			out_end(&p->out, self, t_ns, true);
		}
		out_done(&p->out, t_ns);
		if (!out_flush(&p->out))
			break;
	}
	out_release(&p->out);
	free(p);
	return 0;
}
