/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of an inference engine: what was planned for each component, and what it has used so far. */
#ifndef CMD_SHARED_ENGINE_MEMORY_H
#define CMD_SHARED_ENGINE_MEMORY_H
#include <jansson.h>
#include "engine/engine.h"

struct engine_memory {
	struct load_plan planned;
	uint64_t used[MEM_KINDS], used_bytes; /* most bytes of each kind, and of all at one time */
	int64_t pages_used;		      /* most pages of the cache in use */
	uint64_t outside;		      /* bytes of the GPU in use beyond the plan; CPU: 0 */
	uint64_t process_bytes;		      /* most resident memory of this process */
	bool gpu;
};

/* Reads the engine of this process. */
void engine_memory_read(struct engine_memory *m, struct engine *e);
/* What a kind of memory holds in an engine, which trains nothing. */
const char *engine_memory_text(enum memory_kind kind);
/* [{"component", "what", "planned": bytes or null, "used": bytes}, ..]. NULL: no memory. Owner: caller. */
json_t *engine_memory_json(const struct engine_memory *m);
#endif
