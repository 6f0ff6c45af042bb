/* SPDX-License-Identifier: Apache-2.0 */
/* A recording, one JSON object with the four layers, becomes a machine or is refused; the facts of a machine
 * give the same machine again; every pseudonym is a text. Bytes that are no JSON are a DMI table. */
#include "fuzz.h"

#include "machine/facts/facts.h"
#include "machine/machine.h"
#include "machine/pseudonym.h"
#include "machine/source/source.h"

static void check_machine(const json_t *facts)
{
	struct machine *m = NULL, *again = NULL;
	struct pseudonyms *p;
	json_t *copy;

	if (machine_from_json(&m, facts, NULL))
		return;
	FUZZ_CHECK(machine_cpu(m)->usable >= 1 && machine_cpu(m)->quota >= 0);
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);

		FUZZ_CHECK(g && g->status < STATUS_COUNT && g->cause < CAUSE_COUNT);
		FUZZ_CHECK(memchr(g->pci, 0, sizeof(g->pci)) && memchr(g->reason, 0, sizeof(g->reason)));
	}
	FUZZ_CHECK(!machine_from_json(&again, machine_json(m), NULL));
	FUZZ_CHECK(machine_gpu_count(m) == machine_gpu_count(again));
	FUZZ_CHECK(!memcmp(machine_cpu(m), machine_cpu(again), sizeof(struct cpu)));
	p = pseudonyms_new_salted("salt");
	copy = json_deep_copy(facts);
	pseudonyms_learn(p, copy);
	pseudonyms_apply(p, copy);
	json_decref(copy);
	pseudonyms_free(p);
	machine_free(m);
	machine_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *raw = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL), *facts;
	struct source *s = NULL;

	if (!raw) {
		json_decref(dmi_memory_parse(data, size));
		return 0;
	}
	/* Changes of a derived recording may point anywhere. */
	(void)source_derive(raw, json_object_get(json_object_get(raw, "recording"), "changes"), NULL);
	if (json_is_object(raw) && !source_from_json(&s, raw, NULL)) {
		facts = facts_read(s, &(struct machine_scope){.up_to = LAYER_SOFTWARE});
		FUZZ_CHECK(json_is_object(facts));
		check_machine(facts);
		json_decref(facts);
		source_close(s);
	}
	check_machine(raw);
	json_decref(raw);
	return 0;
}
