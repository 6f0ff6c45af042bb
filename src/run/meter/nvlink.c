/* SPDX-License-Identifier: Apache-2.0 */
#include "run/meter/nvlink.h"
#include <limits.h>

enum { BYTES = 4, ERRORS = 3 };

/* KiB of the link, or of all links together (UINT_MAX). */
static bool add_bytes(struct meter_nvml *n, unsigned link, uint64_t sum[BYTES])
{
	static const unsigned ids[BYTES] = {NVML_LINK_FIELD_data_tx, NVML_LINK_FIELD_data_rx,
					    NVML_LINK_FIELD_raw_tx, NVML_LINK_FIELD_raw_rx};
	nvmlFieldValue_t values[BYTES] = {0};
	double kib[BYTES];

	for (int i = 0; i < BYTES; i++) {
		values[i].fieldId = ids[i];
		values[i].scopeId = link;
	}
	if (METER_NVML(n, FIELDS, fields(n->device, BYTES, values)))
		return false;
	for (int i = 0; i < BYTES; i++)
		if (!nvml_field_f64(&values[i], &kib[i]))
			return false;
	for (int i = 0; i < BYTES; i++)
		sum[i] += (uint64_t)kib[i] * 1024;
	return true;
}

/* If the driver has no sum over the links, each link is read. Returns the number of counters that answered.
 */
static unsigned read_bytes(struct meter_nvml *n, struct nvlink_bytes *out)
{
	uint64_t sum[BYTES] = {0};
	unsigned counters;

	if (!meter_nvml_open(n) || !n->nvml.fields)
		return 0;
	counters = add_bytes(n, UINT_MAX, sum);
	if (!counters)
		for (unsigned link = 0; link < NVML_LINKS_MAX; link++)
			counters += add_bytes(n, link, sum);
	*out = (struct nvlink_bytes){sum[0], sum[1], sum[2], sum[3]};
	return counters;
}

static bool read_link_errors(struct meter_nvml *n, unsigned link, uint64_t *out)
{
	static const unsigned ids[ERRORS] = {NVML_LINK_FIELD_error_replay, NVML_LINK_FIELD_error_recovery,
					     NVML_LINK_FIELD_error_crc};
	nvmlFieldValue_t values[ERRORS] = {0};
	bool any = false;
	double count;

	for (int i = 0; i < ERRORS; i++) {
		values[i].fieldId = ids[i];
		values[i].scopeId = link;
	}
	*out = 0;
	if (METER_NVML(n, FIELDS, fields(n->device, ERRORS, values)))
		return false;
	for (int i = 0; i < ERRORS; i++)
		if (nvml_field_f64(&values[i], &count)) {
			*out += (uint64_t)count;
			any = true;
		}
	return any;
}

static void read_errors(struct meter_nvml *n, struct nvlink_errors *out)
{
	*out = (struct nvlink_errors){0};
	if (!meter_nvml_open(n) || !n->nvml.fields)
		return;
	for (unsigned link = 0; link < NVML_LINKS_MAX; link++)
		out->known |= read_link_errors(n, link, &out->link[link]);
}

void meter_nvlink_begin(struct meter_nvlink *l, struct meter_nvml *n, const struct window *w)
{
	if (!w->nvlink)
		return;
	if (!l->errors.known)
		read_errors(n, &l->errors);
	l->counters = read_bytes(n, &l->before);
}

/* A counter that went back was reset, so the window's traffic is unknown. */
static bool grown(struct nvlink_bytes *out, const struct nvlink_bytes *a, const struct nvlink_bytes *b)
{
	*out = (struct nvlink_bytes){b->tx - a->tx, b->rx - a->rx, b->raw_tx - a->raw_tx,
				     b->raw_rx - a->raw_rx};
	return b->tx >= a->tx && b->rx >= a->rx && b->raw_tx >= a->raw_tx && b->raw_rx >= a->raw_rx;
}

static void tell_errors(struct window *w, const struct nvlink_errors *before, const struct nvlink_errors *now,
			unsigned gpu)
{
	size_t used = 0;

	w->has_nvlink_errors = true;
	for (unsigned link = 0; link < NVML_LINKS_MAX; link++) {
		uint64_t more =
			now->link[link] > before->link[link] ? now->link[link] - before->link[link] : 0;

		if (!more)
			continue;
		w->nvlink_errors += more;
		if (used < sizeof(w->nvlink_place))
			used += (size_t)snprintf(w->nvlink_place + used, sizeof(w->nvlink_place) - used,
						 "%sgpu%u link %u: %llu", used ? ", " : "", gpu, link,
						 (unsigned long long)more);
	}
}

void meter_nvlink_end(struct meter_nvlink *l, struct meter_nvml *n, struct window *w, unsigned gpu)
{
	struct nvlink_errors errors;
	struct nvlink_bytes now;

	if (!w->nvlink)
		return;
	w->has_nvlink = l->counters && read_bytes(n, &now) == l->counters &&
			grown(&w->nvlink_bytes, &l->before, &now);
	read_errors(n, &errors);
	if (errors.known && l->errors.known)
		tell_errors(w, &l->errors, &errors, gpu);
	l->errors = errors;
}
