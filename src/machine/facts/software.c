/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries as the helper process found them: {"name": {"path", "version"} or {"missing"}}. */
#include "core/text/text.h"
#include "machine/facts/facts.h"

bool facts_want_software(const struct facts *f)
{
	return f->libs ? f->libs[0] != NULL : f->up_to >= LAYER_SOFTWARE;
}

/* NVML reports its version only after its initialization. The helper for libraries does not initialize it;
 * the helper for GPUs does. */
static json_t *with_release(const struct facts *f, const char *name, json_t *row)
{
	const json_t *driver = json_object_get(f->tree, "driver");
	const char *release = json_string_value(json_object_get(driver, "nvml_version"));
	json_t *copy;

	if (strcmp(name, "nvml") || !release || !json_object_get(row, "path") ||
	    json_object_get(row, "version"))
		return json_incref(row);
	copy = json_copy(row);
	facts_set_text(copy, "version", release);
	return copy;
}

void facts_software(struct facts *f)
{
	json_t *software = json_object(), *raw, *row;
	const char *name;

	json_object_set_new(f->tree, "software", software);
	if (!facts_want_software(f))
		return;
	raw = (json_t *)source_layer(f->source, LAYER_SOFTWARE);
	if (!raw) {
		facts_unreadable(f, "libraries", facts_cause_of(source_why(f->source, "software")),
				 source_why(f->source, "software"));
		return;
	}
	json_object_foreach(json_object_get(raw, "libraries"), name, row)
		json_object_set_new(software, name, with_release(f, name, row));
}
