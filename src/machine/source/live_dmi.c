/* SPDX-License-Identifier: Apache-2.0 */
/* Memory devices (type 17) of an SMBIOS table (SMBIOS 3.7, section 7.18), or of udev's copy of it. Serial
 * numbers are not read. */
#include <stdint.h>
#include "machine/source/source.h"

static unsigned word(const unsigned char *p)
{
	return (unsigned)p[0] | (unsigned)p[1] << 8;
}

/* The string with this number (from 1) in the set after a record; "" if there is none. *end becomes the end
 * of the set. */
static const char *string_of(const unsigned char *set, const unsigned char *limit, unsigned number)
{
	const unsigned char *p = set;

	for (unsigned i = 1; p < limit && *p; i++) {
		const unsigned char *nul = memchr(p, 0, (size_t)(limit - p));

		if (!nul)
			return "";
		if (i == number)
			return (const char *)p;
		p = nul + 1;
	}
	return "";
}

static const char *type_name(unsigned type)
{
	switch (type) {
	case 0x18:
		return "DDR3";
	case 0x1a:
		return "DDR4";
	case 0x1e:
		return "LPDDR4";
	case 0x20:
		return "HBM";
	case 0x21:
		return "HBM2";
	case 0x22:
		return "DDR5";
	case 0x23:
		return "LPDDR5";
	case 0x24:
		return "HBM3";
	default:
		return "";
	}
}

static json_t *memory_device(const unsigned char *p, unsigned length, const unsigned char *limit)
{
	unsigned size = length >= 0x0e ? word(p + 0x0c) : 0;
	uint64_t bytes = 0;
	unsigned mts = length >= 0x17 ? word(p + 0x15) : 0;
	unsigned configured = length >= 0x22 ? word(p + 0x20) : 0;
	json_t *row;

	if (!size || size == 0xffff)
		return NULL; /* an empty slot, or an unknown size */
	if (size == 0x7fff && length >= 0x20)
		bytes = (uint64_t)(word(p + 0x1c) | (word(p + 0x1e) & 0x7fffu) << 16) << 20;
	else
		bytes = (uint64_t)(size & 0x7fff) << (size & 0x8000 ? 10 : 20);
	row = json_pack("{s:s,s:I,s:s}", "locator", string_of(p + length, limit, length > 0x10 ? p[0x10] : 0),
			"bytes", (json_int_t)bytes, "type", type_name(length > 0x12 ? p[0x12] : 0));
	if (row && mts && mts != 0xffff)
		json_object_set_new(row, "mts", json_integer(mts));
	if (row && configured && configured != 0xffff)
		json_object_set_new(row, "mts_configured", json_integer(configured));
	return row;
}

json_t *dmi_memory_parse(const unsigned char *data, size_t size)
{
	const unsigned char *p = data, *limit = data + size;
	json_t *list = json_array();

	while (limit - p >= 4 && p[1] >= 4 && p[1] <= limit - p && json_array_size(list) < 1024) {
		const unsigned char *next = p + p[1];

		if (p[0] == 17) {
			json_t *row = memory_device(p, p[1], limit);

			if (row)
				json_array_append_new(list, row);
		}
		while (limit - next >= 2 && (next[0] || next[1]))
			next++;
		if (limit - next < 2 || p[0] == 127)
			break;
		p = next + 2;
	}
	return list;
}

/* The value of "E:MEMORY_DEVICE_<index>_<name>=" with its length in *n; NULL: not found. */
static const char *udev_value(const char *text, unsigned index, const char *name, int *n)
{
	char key[64];
	const char *p;

	snprintf(key, sizeof(key), "E:MEMORY_DEVICE_%u_%s=", index, name);
	p = strstr(text, key);
	if (!p || (p > text && p[-1] != '\n'))
		return NULL;
	p += strlen(key);
	*n = (int)strcspn(p, "\n");
	return p;
}

static void udev_number(json_t *row, const char *key, const char *text, unsigned index, const char *name)
{
	int n;
	const char *p = udev_value(text, index, name, &n);
	long long value = p ? strtoll(p, NULL, 10) : 0;

	if (value > 0)
		json_object_set_new(row, key, json_integer(value));
}

json_t *dmi_udev_parse(const char *text)
{
	json_t *list = json_array();
	int n, type_n = 0;

	for (unsigned i = 0; i < 1024; i++) {
		const char *locator = udev_value(text, i, "LOCATOR", &n);
		const char *type = udev_value(text, i, "TYPE", &type_n);
		json_t *row;

		if (!locator && !type && !udev_value(text, i, "PRESENT", &n))
			break;
		row = json_object();
		json_object_set_new(row, "locator",
				    locator ? json_stringn(locator, (size_t)n) : json_string(""));
		udev_number(row, "bytes", text, i, "SIZE");
		json_object_set_new(row, "type", type ? json_stringn(type, (size_t)type_n) : json_string(""));
		udev_number(row, "mts", text, i, "SPEED_MTS");
		udev_number(row, "mts_configured", text, i, "CONFIGURED_SPEED_MTS");
		if (json_object_get(row, "bytes") && json_object_get(row, "locator") &&
		    json_object_get(row, "type"))
			json_array_append(list, row);
		json_decref(row);
	}
	return list;
}
