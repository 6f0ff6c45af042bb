/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries as the helper found them: {"name": {"path", "version"} or {"missing"}}. */
#include "core/text.h"
#include "machine/facts.h"

void facts_software(struct facts *f)
{
	json_t *software = json_object(), *raw, *row;
	const char *name;

	json_object_set_new(f->tree, "software", software);
	if (f->up_to < LAYER_SOFTWARE)
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
