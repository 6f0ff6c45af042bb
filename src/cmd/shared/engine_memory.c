/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/engine_memory.h"
#include "train/memory/process_memory.h"

void engine_memory_read(struct engine_memory *m, struct engine *e)
{
	const struct loaded *l = engine_loaded(e);

	*m = (struct engine_memory){.planned = l->planned,
				    .used_bytes = l->arena.peak,
				    .pages_used = engine_pages_most(e),
				    .process_bytes = memory_peak(),
				    .gpu = l->back.kind == BACKEND_GPU};
	for (int i = 0; i < MEM_KINDS; i++)
		m->used[i] = l->arena.kind_peak[i];
	if (m->gpu) {
		const uint64_t all = memory_of_gpu(&l->back);

		m->outside = all > l->planned.bytes ? all - l->planned.bytes : 0;
	}
}

static void add_row(json_t *out, const char *component, const char *what, json_t *planned, uint64_t used)
{
	json_array_append_new(out, json_pack("{ss ss so sI}", "component", component, "what", what, "planned",
					     planned, "used", (json_int_t)used));
}

const char *engine_memory_text(enum memory_kind kind)
{
	return kind == MEM_TRAINED ? "LoRA adapters" : memory_kind_text(kind);
}

json_t *engine_memory_json(const struct engine_memory *m)
{
	const struct load_plan *p = &m->planned;
	json_t *out = json_array();

	for (int i = 0; out && i < MEM_KINDS; i++)
		if (p->kind_peak[i] || m->used[i])
			add_row(out, memory_kind_name((enum memory_kind)i),
				engine_memory_text((enum memory_kind)i),
				json_integer((json_int_t)p->kind_peak[i]), m->used[i]);
	if (!out)
		return NULL;
	add_row(out, "pages", "of the cache: pages in use",
		json_integer((json_int_t)((uint64_t)p->pages * p->page_bytes)),
		(uint64_t)m->pages_used * p->page_bytes);
	add_row(out, "all", "all of these at one time", json_integer((json_int_t)p->bytes), m->used_bytes);
	if (m->gpu)
		add_row(out, "outside", "GPU memory outside the plan", json_null(), m->outside);
	add_row(out, "process", "resident memory of the process", json_null(), m->process_bytes);
	return out;
}
