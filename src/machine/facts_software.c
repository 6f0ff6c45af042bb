/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries as the helper found them: {"name": {"path", "version"} or {"missing"}}. */
#include "core/text.h"
#include "machine/facts.h"

bool facts_want_software(const struct facts *f)
{
	return f->libs ? f->libs[0] != NULL : f->up_to >= LAYER_SOFTWARE;
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
		json_object_set(software, name, row);
}
