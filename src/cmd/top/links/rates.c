/* SPDX-License-Identifier: Apache-2.0 */
/* Computes rates from two answers of a helper: counter differences divided by the time between the
 * readings. */
#include "cmd/info/info.h"
#include "cmd/top/links/links.h"
#include "core/json/member.h"

/* Reads two integers; false if one is missing. */
static bool both(const json_t *before, const json_t *now, const char *key, json_int_t *from, json_int_t *to)
{
	const json_t *a = json_object_get(before, key), *b = json_object_get(now, key);

	*from = json_integer_value(a);
	*to = json_integer_value(b);
	return json_is_integer(a) && json_is_integer(b);
}

struct rate {
	const char *counter, *name;
};

/* Sets the rates of one row from its counters in two answers. Returns why rates are missing, or NULL. */
static const char *add_rates(json_t *rates, const json_t *before, const json_t *now, double seconds,
			     const struct rate *rows, size_t count)
{
	const char *why = "not supported";

	for (size_t i = 0; i < count; i++) {
		json_int_t from, to;

		if (!both(before, now, rows[i].counter, &from, &to))
			continue;
		if (to < from)
			why = "the counters were reset";
		else
			json_object_set_new(rates, rows[i].name, json_real((double)(to - from) / seconds));
	}
	return why;
}

static double seconds_between(const json_t *before, const json_t *now)
{
	json_int_t from, to;

	return both(before, now, "t_ns", &from, &to) && to > from ? 1e-9 * (double)(to - from) : 0;
}

/* Sets "rates" of `out`, and "rates_why" if a rate is missing. */
static void set_rates(json_t *out, const json_t *before, const json_t *now, const char *map,
		      const struct rate *rows, size_t count)
{
	const json_t *a = map ? json_object_get(before, map) : before;
	const json_t *b = map ? json_object_get(now, map) : now;
	double seconds = seconds_between(before, now);
	json_t *rates = json_object();
	const char *why = json_member_text(now, "rates_why");

	if (!*why && seconds > 0)
		why = add_rates(rates, a, b, seconds, rows, count);
	else if (!*why)
		why = "no second reading";
	if (json_object_size(rates) < count)
		json_object_set_new(out, "rates_why", json_string(why));
	json_object_set_new(out, "rates", rates);
}

/* Sums the error counters of `now` and lists those that rose since `before`. */
static void set_errors(json_t *out, const json_t *before, const json_t *now, const char *const *keys,
		       size_t count)
{
	json_t *risen = json_object();
	json_int_t total = 0, from, to;
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_object_get(now, keys[i]);

		any = any || json_is_integer(value);
		total += json_integer_value(value);
		if (both(before, now, keys[i], &from, &to) && to > from)
			json_object_set_new(risen, keys[i], json_integer(to - from));
	}
	if (any)
		json_object_set_new(out, "error_count", json_integer(total));
	if (json_object_size(risen))
		json_object_set(out, "risen", risen);
	json_decref(risen);
}

static const struct rate nvlink_rates[] = {{"data_tx_bytes", "payload_tx"},
					   {"data_rx_bytes", "payload_rx"},
					   {"raw_tx_bytes", "raw_tx"},
					   {"raw_rx_bytes", "raw_rx"}};
enum { NVLINK_RATES = sizeof(nvlink_rates) / sizeof(nvlink_rates[0]) };

/* Converts NVML's version number to the usual text. Some drivers report 5.0 for Hopper's links, but their
 * rate is that of 4.0. */
static const char *version_text(json_int_t code, double rate_gbps)
{
	static const char *const texts[] = {NULL, "1.0", "2.0", "2.2", "3.0", "3.1", "4.0", "5.0", "6.0"};
	const size_t hopper = 6;

	if (code == 7 && rate_gbps > 0 && rate_gbps < 30)
		return texts[hopper];
	return code > 0 && code < (json_int_t)(sizeof(texts) / sizeof(texts[0])) ? texts[code] : NULL;
}

static json_t *one_link(const json_t *before, const json_t *now)
{
	static const char *const kept[] = {"link", "active", "remote_type", "remote_pci", "rate_gbps"};
	static const char *const errors[] = {"error_replay", "error_recovery", "error_crc",
					     "effective_errors", "symbol_errors"};
	const char *version = version_text(json_integer_value(json_object_get(now, "version")),
					   info_number(now, "rate_gbps"));
	json_t *link = json_object();

	if (version)
		json_object_set_new(link, "version", json_string(version));
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		json_object_set(link, kept[i], json_object_get(now, kept[i]));
	set_rates(link, before, now, NULL, nvlink_rates, NVLINK_RATES);
	set_errors(link, before, now, errors, sizeof(errors) / sizeof(errors[0]));
	return link;
}

/* The entry of a list whose `key` equals that of `row`; NULL if there is none. */
static const json_t *same(const json_t *list, const json_t *row, const char *key)
{
	const json_t *other;
	size_t i;

	json_array_foreach((json_t *)list, i, other)
	{
		if (json_equal(json_object_get(other, key), json_object_get(row, key)))
			return other;
	}
	return NULL;
}

/* Adds sums over links. If a link lacks a value, the sum is omitted, because it would be too small. */
static void add_sums(json_t *gpu, const json_t *links)
{
	json_t *sum = json_object();
	const json_t *link, *rate;
	size_t l;

	for (size_t i = 0; i < NVLINK_RATES; i++) {
		double total = 0;
		bool whole = json_array_size(links) > 0;

		json_array_foreach((json_t *)links, l, link)
		{
			rate = json_object_get(json_object_get(link, "rates"), nvlink_rates[i].name);
			whole = whole && (rate || !json_is_true(json_object_get(link, "active")));
			total += json_number_value(rate);
		}
		if (whole)
			json_object_set_new(sum, nvlink_rates[i].name, json_real(total));
	}
	json_object_set_new(gpu, "sum", sum);
}

static void fill_gpu(json_t *gpu, const json_t *before, const json_t *now)
{
	json_t *links = json_array();
	const json_t *link, *list = json_object_get(now, "links");
	json_int_t up = 0;
	size_t i;

	json_array_foreach((json_t *)list, i, link)
	{
		up += json_is_true(json_object_get(link, "active"));
		json_array_append_new(links,
				      one_link(same(json_object_get(before, "links"), link, "link"), link));
	}
	json_object_set(gpu, "why", json_object_get(now, "why"));
	json_object_set(gpu, "links_why", json_object_get(now, "links_why"));
	json_object_set_new(gpu, "up", json_integer(up));
	add_sums(gpu, links);
	json_object_set_new(gpu, "links", links);
}

/* Adds GPUs that the driver knows but the PCI bus does not show, as in some containers. */
static void add_others(json_t *gpus, const json_t *before, const json_t *now)
{
	const json_t *other;
	size_t i;

	json_array_foreach(json_object_get(now, "gpus"), i, other)
	{
		json_t *gpu;
		bool unnamed = !*json_member_text(other, "pci");

		/* A GPU that was lost before its address could be read counts as one that is not listed yet.
		 */
		if (unnamed ? json_array_size(gpus) >= json_array_size(json_object_get(now, "gpus"))
			    : same(gpus, other, "pci") != NULL)
			continue;
		gpu = json_pack("{s:i,s:O}", "gpu", (int)json_array_size(gpus), "pci",
				json_object_get(other, "pci"));
		fill_gpu(gpu, same(json_object_get(before, "gpus"), other, "pci"), other);
		json_array_append_new(gpus, gpu);
	}
}

json_t *links_nvlink(const json_t *before, const json_t *now, const struct machine *m)
{
	json_t *part = json_pack("{s:[]}", "gpus"), *gpus = json_object_get(part, "gpus");
	const json_t *list = json_object_get(now, "gpus");

	for (unsigned i = 0; now && i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);
		json_t *gpu = json_pack("{s:i,s:s}", "gpu", (int)i, "pci", g->pci);
		const json_t *found = same(list, gpu, "pci");

		if (found)
			fill_gpu(gpu, same(json_object_get(before, "gpus"), gpu, "pci"), found);
		else if (!json_object_get(now, "why"))
			json_object_set_new(gpu, "why",
					    json_string("on the PCI bus, but unknown to the driver"));
		json_array_append_new(gpus, gpu);
	}
	add_others(gpus, before, now);
	if (json_object_get(now, "gpus") && !json_array_size(gpus))
		json_object_set_new(part, "none", json_string("no NVIDIA GPU on this machine"));
	else if (!machine_gpu_count(m) && !strcmp(json_member_text(now, "cause"), "driver_missing"))
		json_object_set_new(part, "none", json_string("no NVIDIA GPU and no driver on this machine"));
	else
		json_object_set(part, "why", json_object_get(now, "why"));
	return part;
}

static json_t *one_port(const json_t *before, const json_t *now)
{
	static const char *const dropped[] = {"t_ns", "counters", "errors"};
	static const struct rate rates[] = {{"tx_bytes", "tx"}, {"rx_bytes", "rx"}};
	const json_t *errors = json_object_get(now, "errors");
	const char *keys[64], *key;
	json_t *port = json_copy((json_t *)now), *value;
	size_t count = 0;

	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		json_object_del(port, dropped[i]);
	if (!json_object_size(json_object_get(port, "unreadable")))
		json_object_del(port, "unreadable");
	set_rates(port, before, now, "counters", rates, sizeof(rates) / sizeof(rates[0]));
	json_object_foreach((json_t *)errors, key, value)
	{
		if (count < sizeof(keys) / sizeof(keys[0]))
			keys[count++] = key;
	}
	set_errors(port, json_object_get(before, "errors"), errors, keys, count);
	return port;
}

static const json_t *same_port(const json_t *list, const json_t *port)
{
	const json_t *other;
	size_t i;

	json_array_foreach((json_t *)list, i, other)
	{
		if (!strcmp(json_member_text(other, "device"), json_member_text(port, "device")) &&
		    !strcmp(json_member_text(other, "port"), json_member_text(port, "port")))
			return other;
	}
	return NULL;
}

json_t *links_ib(const json_t *before, const json_t *now)
{
	json_t *part = json_pack("{s:[]}", "ports"), *ports = json_object_get(part, "ports");
	const json_t *list = json_object_get(now, "ports"), *port;
	size_t i;

	json_object_set(part, "why", json_object_get(now, "why"));
	if (now && !json_array_size(list) && !json_object_get(now, "why"))
		json_object_set_new(part, "none", json_string("no InfiniBand or RoCE port on this machine"));
	json_array_foreach((json_t *)list, i, port) json_array_append_new(
		ports, one_port(same_port(json_object_get(before, "ports"), port), port));
	return part;
}

static void add_why(json_t *row)
{
	json_object_set_new(row, "rates_why", json_string("a recording has only one reading"));
}

json_t *links_recorded_nvlink(const struct machine *m)
{
	json_t *answer = json_pack("{s:[]}", "gpus");
	const json_t *gpus = json_object_get(machine_json(m), "gpus"), *row, *link;
	size_t i, l;

	json_array_foreach((json_t *)gpus, i, row)
	{
		const struct gpu *g = machine_gpu(m, (unsigned)i);
		const char *why = info_fact_why(row, g, GPU_FACT_nvlink_active);
		json_t *gpu = json_pack("{s:s,s:[]}", "pci", json_member_text(row, "pci"), "links");

		json_array_foreach(json_object_get(row, "links"), l, link)
		{
			json_t *copy = json_copy((json_t *)link);

			add_why(copy);
			json_array_append_new(json_object_get(gpu, "links"), copy);
		}
		if (g->status)
			json_object_set_new(gpu, "why", json_string(g->reason));
		else if (!json_array_size(json_object_get(gpu, "links")))
			json_object_set_new(gpu, "links_why", json_string(why ? why : "not read"));
		json_array_append_new(json_object_get(answer, "gpus"), gpu);
	}
	return answer;
}

json_t *links_recorded_ib(const struct machine *m)
{
	json_t *answer = json_pack("{s:[]}", "ports");
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(machine_json(m), "ports"), i, port)
	{
		const char *kind = json_member_text(port, "kind");
		json_t *copy;

		if (strcmp(kind, "infiniband") && strcmp(kind, "roce"))
			continue;
		copy = json_copy((json_t *)port);
		add_why(copy);
		json_array_append_new(json_object_get(answer, "ports"), copy);
	}
	return answer;
}
