/* SPDX-License-Identifier: Apache-2.0 */
/* InfiniBand, RoCE and Ethernet ports, from /sys/class only. */
#include "core/text/text.h"
#include "machine/facts/facts.h"

/* Turns "4: ACTIVE" into "ACTIVE". */
static const char *after_colon(const char *text)
{
	const char *p = text ? strchr(text, ':') : NULL;

	return p ? p + 1 + strspn(p + 1, " ") : text;
}

static void add_place(struct facts *f, json_t *port, const char *folder)
{
	const char *link = source_linkf(f->source, "%s/device", folder), *name;
	double node;

	name = link ? strrchr(link, '/') : NULL;
	if (name && strchr(name, ':'))
		facts_set_text(port, "pci", name + 1);
	link = source_linkf(f->source, "%s/device/physfn", folder);
	name = link ? strrchr(link, '/') : NULL;
	if (name && strchr(name, ':'))
		facts_set_text(port, "function_of", name + 1);
	if (facts_number(source_textf(f->source, "%s/device/numa_node", folder), &node))
		facts_set_number(port, "numa_node", node);
}

/* Chooses the first RoCE v2 GID of an IPv4 address, else the first RoCE v2 GID. GIDs in use come first in the
 * table, and reading all 256 of each port takes too long. */
static void roce_gid(struct facts *f, json_t *port, const char *folder)
{
	enum { LOOKED_AT = 16 };
	static const char mapped[] = "0000:0000:0000:0000:0000:ffff:";
	int found = -1;

	for (int i = 0; i < LOOKED_AT; i++) {
		const char *type = source_textf(f->source, "%s/gid_attrs/types/%d", folder, i), *gid;
		bool ipv4;

		if (!type || strcmp(type, "RoCE v2"))
			continue;
		gid = source_textf(f->source, "%s/gids/%d", folder, i);
		ipv4 = gid && !strncmp(gid, mapped, strlen(mapped));
		if (found < 0 || ipv4)
			found = i;
		if (ipv4)
			break;
	}
	if (found >= 0)
		facts_set_number(port, "gid_roce_v2", found);
}

static void infiniband_port(struct facts *f, json_t *ports, const char *device, const char *number)
{
	static const char *const base = "/sys/class/infiniband";
	static const char *const counters[] = {"symbol_error",	      "link_downed",
					       "link_error_recovery", "port_rcv_errors",
					       "port_xmit_discards",  "local_link_integrity_errors"};
	char folder[256];
	const char *rate, *layer;
	json_t *port = json_pack("{s:s,s:s}", "device", device, "port", number), *errors = json_object();
	double value;

	layer = source_textf(f->source, "%s/%s/ports/%s/link_layer", base, device, number);
	facts_set_text(port, "kind", layer && !strcmp(layer, "Ethernet") ? "roce" : "infiniband");
	facts_set_text(port, "state",
		       after_colon(source_textf(f->source, "%s/%s/ports/%s/state", base, device, number)));
	facts_set_text(
		port, "physical",
		after_colon(source_textf(f->source, "%s/%s/ports/%s/phys_state", base, device, number)));
	rate = source_textf(f->source, "%s/%s/ports/%s/rate", base, device, number);
	if (rate && strtod(rate, NULL) > 0)
		facts_set_number(port, "rate_gbit", strtod(rate, NULL));
	facts_set_text(port, "rate_text", rate);
	if (layer && !strcmp(layer, "Ethernet")) {
		snprintf(folder, sizeof(folder), "%s/%s/ports/%s", base, device, number);
		roce_gid(f, port, folder);
	}
	facts_set_text(port, "gid", source_textf(f->source, "%s/%s/ports/%s/gids/0", base, device, number));
	facts_set_text(port, "firmware", source_textf(f->source, "%s/%s/fw_ver", base, device));
	facts_set_text(port, "board", source_textf(f->source, "%s/%s/board_id", base, device));
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		if (facts_number(source_textf(f->source, "%s/%s/ports/%s/counters/%s", base, device, number,
					      counters[i]),
				 &value))
			facts_set_number(errors, counters[i], value);
	}
	if (json_object_size(errors))
		json_object_set(port, "errors", errors);
	json_decref(errors);
	snprintf(folder, sizeof(folder), "%s/%s", base, device);
	add_place(f, port, folder);
	json_array_append_new(ports, port);
}

static void infiniband(struct facts *f, json_t *ports)
{
	const json_t *devices = source_list(f->source, "/sys/class/infiniband"), *device, *number;
	size_t i, j;

	json_array_foreach((json_t *)devices, i, device)
	{
		const char *name = json_string_value(device);
		char path[256];
		const json_t *numbers;

		if (!name)
			continue;
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", name);
		numbers = source_list(f->source, path);
		json_array_foreach((json_t *)numbers, j, number)
		{
			if (json_string_value(number))
				infiniband_port(f, ports, name, json_string_value(number));
		}
	}
}

static void ethernet(struct facts *f, json_t *ports)
{
	const json_t *names = source_list(f->source, "/sys/class/net"), *name;
	size_t i;

	json_array_foreach((json_t *)names, i, name)
	{
		const char *device = json_string_value(name), *type, *text;
		char folder[256];
		double value;
		json_t *port;

		if (!device || !strcmp(device, "lo"))
			continue;
		snprintf(folder, sizeof(folder), "/sys/class/net/%s", device);
		/* Hardware ports only: bridges, tunnels and the like have no device. */
		if (!source_linkf(f->source, "%s/device", folder))
			continue;
		type = source_textf(f->source, "%s/type", folder);
		port = json_pack("{s:s,s:s}", "device", device, "kind",
				 type && !strcmp(type, "32") ? "ipoib" : "ethernet");
		facts_set_text(port, "state", source_textf(f->source, "%s/operstate", folder));
		if (facts_number(source_textf(f->source, "%s/speed", folder), &value) && value > 0)
			facts_set_number(port, "rate_gbit", value / 1000);
		if (facts_number(source_textf(f->source, "%s/mtu", folder), &value))
			facts_set_number(port, "mtu", value);
		facts_set_text(port, "address", source_textf(f->source, "%s/address", folder));
		text = source_linkf(f->source, "%s/device/driver", folder);
		if (text)
			facts_set_text(port, "driver", strrchr(text, '/') ? strrchr(text, '/') + 1 : text);
		add_place(f, port, folder);
		json_array_append_new(ports, port);
	}
}

/* Names of all interfaces that sockets may be bound to, including bridges and the like. */
static void interfaces(struct facts *f)
{
	const json_t *names = source_list(f->source, "/sys/class/net"), *name;
	json_t *list = json_array();
	size_t i;

	json_array_foreach((json_t *)names, i, name)
	{
		json_t *row = json_pack("{s:s}", "name", json_string_value(name));

		if (!row)
			continue;
		facts_set_text(
			row, "state",
			source_textf(f->source, "/sys/class/net/%s/operstate", json_string_value(name)));
		json_array_append_new(list, row);
	}
	if (names)
		json_object_set(f->tree, "interfaces", list);
	json_decref(list);
}

void facts_ports(struct facts *f)
{
	json_t *ports = json_array();

	infiniband(f, ports);
	ethernet(f, ports);
	interfaces(f);
	if (!source_list(f->source, "/sys/class/net"))
		facts_unreadable(f, "network ports", facts_cause_of(source_why(f->source, "/sys/class/net")),
				 source_why(f->source, "/sys/class/net"));
	json_object_set_new(f->tree, "ports", ports);
}
