/* SPDX-License-Identifier: Apache-2.0 */
/* Field values: those of the device, and those of its NVLinks, which are read link by link. */
#include <stdbool.h>
#include <string.h>
#include "machine/raw/nvml.h"

/* Fields in ns and mJ count what happens during a run and cost up to 3 ms each, so telemetry reads them. */
static bool is_a_fact(const char *unit)
{
	return strcmp(unit, "ns") && strcmp(unit, "mJ");
}

static bool is_time(const char *unit)
{
	return !strcmp(unit, "ns");
}

static void read_fields(const struct nvml *n, nvmlDevice_t d, bool wanted(const char *unit), json_t *fields)
{
	static const struct {
		const char *name, *unit;
		unsigned id;
	} rows[] = {
#define X(name, id, unit) {#name, unit, id},
		NVML_FIELDS(X)
#undef X
	};
	enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
	nvmlFieldValue_t values[COUNT] = {0};
	const char *names[COUNT];
	nvmlReturn_t ret;
	int count = 0;

	if (!n->fields)
		return;
	for (size_t i = 0; i < COUNT; i++) {
		if (!wanted(rows[i].unit))
			continue;
		names[count] = rows[i].name;
		values[count++].fieldId = rows[i].id;
	}
	ret = n->fields(d, count, values);
	for (int i = 0; i < count; i++) {
		double v = 0;
		bool known = !ret && nvml_field_f64(&values[i], &v);

		raw_put(fields, names[i], ret ? ret : values[i].nvmlReturn,
			!known			     ? NULL
			: v == (double)(json_int_t)v ? json_integer((json_int_t)v)
						     : json_real(v));
	}
}

void raw_nvml_fields(const struct nvml *n, nvmlDevice_t d, json_t *fields)
{
	read_fields(n, d, is_a_fact, fields);
}

void raw_nvml_violations(const struct nvml *n, nvmlDevice_t d, json_t *fields)
{
	read_fields(n, d, is_time, fields);
}

void raw_nvml_link_fields(const struct nvml *n, nvmlDevice_t d, unsigned link, json_t *fields)
{
	static const struct {
		const char *name;
		unsigned id;
	} rows[] = {
#define X(name, id, unit) {#name, id},
		NVML_LINK_FIELDS(X)
#undef X
	};
	enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
	nvmlFieldValue_t values[COUNT] = {0};
	nvmlReturn_t ret;

	for (size_t i = 0; i < COUNT; i++) {
		values[i].fieldId = rows[i].id;
		values[i].scopeId = link;
	}
	ret = n->fields(d, COUNT, values);
	for (size_t i = 0; i < COUNT; i++) {
		double v = 0;
		bool known = !ret && nvml_field_f64(&values[i], &v);

		raw_put(fields, rows[i].name, ret ? ret : values[i].nvmlReturn,
			known ? json_integer((json_int_t)v) : NULL);
	}
}

/* Adds one link. Returns false if there is no link with that number. Counters are read only if the link's
 * state is known. */
static bool add_link(const struct nvml *n, nvmlDevice_t d, unsigned link, json_t *links)
{
	nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
	nvmlEnableState_t up = NVML_FEATURE_DISABLED;
	nvmlPciInfo_t pci = {0};
	unsigned int version = 0;
	json_t *row, *fields;
	nvmlReturn_t ret;

	if (!n->nvlink_state)
		return false;
	ret = n->nvlink_state(d, link, &up);
	if (ret == NVML_ERROR_INVALID_ARGUMENT || (ret && link))
		return false;
	row = json_object();
	raw_put(row, "nvlink_state", ret, raw_integer(up));
	json_array_append_new(links, row);
	if (ret)
		return false;
	if (n->nvlink_version) {
		ret = n->nvlink_version(d, link, &version);
		raw_put(row, "nvlink_version", ret, raw_integer(version));
	}
	if (n->nvlink_remote_type) {
		ret = n->nvlink_remote_type(d, link, &type);
		raw_put(row, "nvlink_remote_type", ret, raw_integer(type));
	}
	if (n->nvlink_remote_pci) {
		ret = n->nvlink_remote_pci(d, link, &pci);
		raw_put(row, "nvlink_remote_pci", ret, raw_pci(&pci));
	}
	if (n->fields) {
		fields = json_object();
		raw_nvml_link_fields(n, d, link, fields);
		json_object_set_new(row, "fields", fields);
	}
	return true;
}

void raw_nvml_links(const struct nvml *n, nvmlDevice_t d, json_t *links)
{
	for (unsigned link = 0; link < NVML_LINKS_MAX; link++)
		if (!add_link(n, d, link, links))
			return;
}
