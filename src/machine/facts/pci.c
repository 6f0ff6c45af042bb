/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs on the PCI bus, by class 03xx and vendor 10de. This needs no driver. */
#include <ctype.h>
#include "core/text/text.h"
#include "machine/facts/facts.h"

#define DEVICES "/sys/bus/pci/devices"

/* Turns "32.0 GT/s PCIe" into 5. */
static unsigned pcie_generation(const char *speed)
{
	double rate;
	char *end;

	if (!speed || !isdigit((unsigned char)*speed))
		return 0;
	rate = strtod(speed, &end);
	if (end == speed || !strstr(end, "GT/s"))
		return 0;
	return rate >= 63 ? 6 : rate >= 31 ? 5 : rate >= 15 ? 4 : rate >= 7 ? 3 : rate >= 4.5 ? 2 : 1;
}

static double hex_of(struct facts *f, const char *pci, const char *name)
{
	double value;

	return facts_number(source_textf(f->source, DEVICES "/%s/%s", pci, name), &value) ? value : 0;
}

/* The address of a slot is the PCI address without the function number. */
static void add_slot(struct facts *f, json_t *gpu, const char *pci)
{
	const json_t *names = source_list(f->source, "/sys/bus/pci/slots"), *name;
	size_t i, n = strlen(pci) - 2;

	json_array_foreach((json_t *)names, i, name)
	{
		const char *slot = json_string_value(name), *address;

		address = slot ? source_textf(f->source, "/sys/bus/pci/slots/%s/address", slot) : NULL;
		if (address && strlen(address) == n && !strncmp(address, pci, n)) {
			facts_set_text(gpu, "slot", slot);
			return;
		}
	}
}

/* PCI addresses from the root port down, from a link such as
 * "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0". */
static json_t *pci_path(const char *link)
{
	json_t *list = json_array();
	unsigned domain, bus, device, function;

	for (const char *p = link; p && *p; p = strchr(p, '/')) {
		char part[24];

		p += *p == '/';
		snprintf(part, sizeof(part), "%.*s", (int)strcspn(p, "/"), p);
		if (isxdigit((unsigned char)part[0]) &&
		    sscanf(part, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4)
			json_array_append_new(list, json_string(part));
		if (!*p)
			break;
	}
	return list;
}

static void add_link_state(struct facts *f, json_t *gpu, const char *pci)
{
	static const struct {
		const char *file, *key;
		bool speed;
	} rows[] = {{"current_link_speed", "gen", true},
		    {"max_link_speed", "gen_max", true},
		    {"current_link_width", "width", false},
		    {"max_link_width", "width_max", false}};
	json_t *pcie = json_object();

	for (size_t i = 0; i < 4; i++) {
		const char *text = source_textf(f->source, DEVICES "/%s/%s", pci, rows[i].file);
		double value = 0;

		if (rows[i].speed)
			value = pcie_generation(text);
		else if (!facts_number(text, &value) || value > 32)
			value = 0; /* 255 and 63 are the answers of an absent device */
		if (value > 0)
			facts_set_number(pcie, rows[i].key, value);
	}
	if (json_object_size(pcie))
		json_object_set(gpu, "pcie", pcie);
	json_decref(pcie);
}

static json_t *pci_gpu(struct facts *f, const char *pci)
{
	const char *link = source_linkf(f->source, DEVICES "/%s", pci), *driver;
	json_t *gpu = json_pack("{s:s,s:{},s:{}}", "pci", pci, "facts", "unreadable");
	double node;

	facts_set_number(gpu, "pci_device", hex_of(f, pci, "device") * 65536 + hex_of(f, pci, "vendor"));
	facts_set_number(gpu, "pci_subsystem",
			 hex_of(f, pci, "subsystem_device") * 65536 + hex_of(f, pci, "subsystem_vendor"));
	add_slot(f, gpu, pci);
	driver = source_linkf(f->source, DEVICES "/%s/driver", pci);
	if (driver)
		facts_set_text(gpu, "kernel_driver",
			       strrchr(driver, '/') ? strrchr(driver, '/') + 1 : driver);
	if (facts_number(source_textf(f->source, DEVICES "/%s/numa_node", pci), &node))
		facts_set_number(json_object_get(gpu, "facts"), "numa_node", node);
	facts_set_text(gpu, "local_cpus", source_textf(f->source, DEVICES "/%s/local_cpulist", pci));
	if (link)
		facts_set(gpu, "pci_path", pci_path(link));
	add_link_state(f, gpu, pci);
	return gpu;
}

json_t *facts_pci_gpus(struct facts *f)
{
	const json_t *names = source_list(f->source, DEVICES), *name;
	json_t *gpus = json_array(), *bridges = json_array();
	size_t i;

	json_array_foreach((json_t *)names, i, name)
	{
		const char *pci = json_string_value(name), *class;
		const char *vendor;

		if (!pci || strlen(pci) < 12 || strlen(pci) > 15)
			continue;
		class = source_textf(f->source, DEVICES "/%s/class", pci);
		if (!class || (strncmp(class, "0x03", 4) && strncmp(class, "0x0680", 6)))
			continue;
		vendor = source_textf(f->source, DEVICES "/%s/vendor", pci);
		if (!vendor || strcmp(vendor, "0x10de"))
			continue;
		if (!strncmp(class, "0x03", 4))
			json_array_append_new(gpus, pci_gpu(f, pci));
		else
			json_array_append_new(bridges, json_string(pci));
	}
	if (!names)
		facts_unreadable(f, "PCI bus", facts_cause_of(source_why(f->source, DEVICES)),
				 source_why(f->source, DEVICES));
	if (json_array_size(bridges))
		json_object_set(f->tree, "nvswitches", bridges);
	json_decref(bridges);
	return gpus;
}
