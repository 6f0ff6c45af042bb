/* SPDX-License-Identifier: Apache-2.0 */
/* InfiniBand and RoCE ports, from sysfs. Each counter is a file, and reading it may take the adapter's
 * firmware some time. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include "core/clock.h"
#include "core/file/file.h"
#include "core/text/text.h"
#include "machine/facts/facts.h"
#include "machine/source/live.h"
#include "machine/watch/watch.h"

enum { GIDS_MAX = 256, TEXT_BYTES_MAX = 4096 };

/* file in the port's folder, name, bytes per count. Data counters count words of 4 bytes. */
static const struct counter {
	const char *file, *name;
	unsigned scale;
} data[] = {
	{"counters/port_xmit_data", "tx_bytes", 4},
	{"counters/port_rcv_data", "rx_bytes", 4},
};
static const struct counter traffic[] = {
	{"counters/port_xmit_packets", "tx_packets", 1},
	{"counters/port_rcv_packets", "rx_packets", 1},
	{"counters/port_xmit_wait", "tx_wait_ticks", 1},
	{"hw_counters/np_cnp_sent", "congestion_told", 1},
	{"hw_counters/rp_cnp_handled", "congestion_heeded", 1},
	{"hw_counters/np_ecn_marked_roce_packets", "congestion_marked", 1},
};
static const struct counter errors[] = {
	{"counters/symbol_error", "symbol_error", 1},
	{"counters/link_error_recovery", "link_error_recovery", 1},
	{"counters/link_downed", "link_downed", 1},
	{"counters/port_rcv_errors", "port_rcv_errors", 1},
	{"counters/port_rcv_remote_physical_errors", "port_rcv_remote_physical_errors", 1},
	{"counters/port_rcv_switch_relay_errors", "port_rcv_switch_relay_errors", 1},
	{"counters/port_xmit_discards", "port_xmit_discards", 1},
	{"counters/port_xmit_constraint_errors", "port_xmit_constraint_errors", 1},
	{"counters/port_rcv_constraint_errors", "port_rcv_constraint_errors", 1},
	{"counters/local_link_integrity_errors", "local_link_integrity_errors", 1},
	{"counters/excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors", 1},
	{"counters/VL15_dropped", "VL15_dropped", 1},
	{"hw_counters/out_of_sequence", "out_of_sequence", 1},
	{"hw_counters/packet_seq_err", "packet_seq_err", 1},
	{"hw_counters/local_ack_timeout_err", "local_ack_timeout_err", 1},
	{"hw_counters/rnr_nak_retry_err", "rnr_nak_retry_err", 1},
	{"hw_counters/roce_adp_retrans", "roce_adp_retrans", 1},
};

/* Reads the first line of a file into `out`. Returns 0 or errno. */
static int read_line(char *out, size_t size, const char *folder, const char *file)
{
	struct error err = {0};
	char path[3 * PATH_MAX], *text = NULL;
	size_t length = 0;

	*out = 0;
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	errno = 0;
	if (file_read(&text, &length, path, TEXT_BYTES_MAX, &err))
		return errno ? errno : EIO;
	text[strcspn(text, "\n")] = 0;
	text_copy(out, size, text);
	free(text);
	return 0;
}

/* Adds a state: "4: ACTIVE" becomes "ACTIVE". */
static void add_state(json_t *port, const char *key, const char *folder, const char *file)
{
	char text[64], *colon;

	if (read_line(text, sizeof(text), folder, file))
		return;
	colon = strchr(text, ':');
	facts_set_text(port, key, colon ? colon + 1 + strspn(colon + 1, " ") : text);
}

/* Adds counters. A missing file means that the counter is not supported. A file that cannot be read goes to
 * "unreadable". */
static void add_counters(json_t *port, const char *key, const char *folder, const struct counter *rows,
			 size_t count)
{
	json_t *map = json_object_get(port, key), *refused;

	for (size_t i = 0; i < count; i++) {
		char text[64], *end;
		int errnum = read_line(text, sizeof(text), folder, rows[i].file);
		unsigned long long value = strtoull(text, &end, 10);

		if (!errnum && end != text)
			json_object_set_new(map, rows[i].name,
					    json_integer((json_int_t)(value * rows[i].scale)));
		if (!errnum || errnum == ENOENT)
			continue;
		refused = live_refusal("", errnum);
		json_object_set(json_object_get(port, "unreadable"), rows[i].file,
				json_object_get(refused, "error"));
		json_decref(refused);
	}
}

static bool is_no_gid(const char *gid)
{
	return !gid[strspn(gid, "0:")];
}

/* Adds the port's address: GID 0. For RoCE, the first GID of version 2, the one that NCCL_IB_GID_INDEX would
 * select. */
static void add_gid(json_t *port, const char *folder, bool roce)
{
	char file[64], gid[64], type[64];
	int index = 0;

	for (int i = 0; roce && i < GIDS_MAX; i++) {
		snprintf(file, sizeof(file), "gid_attrs/types/%d", i);
		if (read_line(type, sizeof(type), folder, file) == ENOENT)
			break;
		snprintf(file, sizeof(file), "gids/%d", i);
		if (!strcmp(type, "RoCE v2") && !read_line(gid, sizeof(gid), folder, file) &&
		    !is_no_gid(gid)) {
			index = i;
			break;
		}
	}
	snprintf(file, sizeof(file), "gids/%d", index);
	if (read_line(gid, sizeof(gid), folder, file) || is_no_gid(gid))
		return;
	facts_set_text(port, "gid", gid);
	facts_set_number(port, "gid_index", index);
	snprintf(file, sizeof(file), "gid_attrs/ndevs/%d", index);
	if (!read_line(gid, sizeof(gid), folder, file))
		facts_set_text(port, "interface", gid);
}

static json_t *read_port(const char *folder, const char *device, const char *number)
{
	const struct clock *clock = clock_monotonic();
	json_t *port = json_pack("{s:s,s:s,s:{},s:{},s:{}}", "device", device, "port", number, "counters",
				 "errors", "unreadable");
	char text[128];
	uint64_t before;
	double lid;
	bool roce;

	if (!port)
		return NULL;
	read_line(text, sizeof(text), folder, "link_layer");
	roce = !strcmp(text, "Ethernet");
	facts_set_text(port, "kind", roce ? "roce" : "infiniband");
	add_state(port, "state", folder, "state");
	add_state(port, "physical", folder, "phys_state");
	if (!read_line(text, sizeof(text), folder, "rate")) {
		facts_set_text(port, "rate_text", text);
		if (strtod(text, NULL) > 0)
			facts_set_number(port, "rate_gbit", strtod(text, NULL));
	}
	if (!read_line(text, sizeof(text), folder, "lid") && facts_number(text, &lid) && lid > 0)
		facts_set_number(port, "lid", lid);
	add_gid(port, folder, roce);
	before = clock_now_ns(clock);
	add_counters(port, "counters", folder, data, sizeof(data) / sizeof(data[0]));
	json_object_set_new(port, "t_ns",
			    json_integer((json_int_t)(before + (clock_now_ns(clock) - before) / 2)));
	add_counters(port, "counters", folder, traffic, sizeof(traffic) / sizeof(traffic[0]));
	add_counters(port, "errors", folder, errors, sizeof(errors) / sizeof(errors[0]));
	return port;
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void read_device(json_t *ports, const char *base, const char *device)
{
	char folder[2 * PATH_MAX];
	struct dirent **names = NULL;
	int count;

	snprintf(folder, sizeof(folder), "%s/%.255s/ports", base, device);
	count = scandir(folder, &names, visible, versionsort);
	for (int i = 0; i < count; i++) {
		json_t *port;

		snprintf(folder, sizeof(folder), "%s/%.255s/ports/%s", base, device, names[i]->d_name);
		port = read_port(folder, device, names[i]->d_name);
		if (port)
			json_array_append_new(ports, port);
		free(names[i]);
	}
	free(names);
}

json_t *watch_ib_read(const char *sys)
{
	json_t *answer = json_pack("{s:[]}", "ports"), *ports = json_object_get(answer, "ports"), *refused;
	char base[PATH_MAX];
	struct dirent **names = NULL;
	int count;

	snprintf(base, sizeof(base), "%s/class/infiniband", sys);
	count = scandir(base, &names, visible, versionsort);
	if (count < 0 && errno != ENOENT) {
		refused = live_refusal(base, errno);
		json_object_set(answer, "why", json_object_get(refused, "error"));
		json_decref(refused);
	}
	for (int i = 0; i < count; i++) {
		read_device(ports, base, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return answer;
}
