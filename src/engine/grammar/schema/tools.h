/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools in the formats that chat templates use (model/chat). */
#ifndef ENGINE_GRAMMAR_SCHEMA_TOOLS_H
#define ENGINE_GRAMMAR_SCHEMA_TOOLS_H
#include "engine/grammar/schema/schema.h"

/* Builds the texts that a source of type "tool_calls" allows, from one node to another. `must_call`: in mode
 * auto only those with a call, because the caller builds the others. */
void tools_build(struct builder *b, const json_t *source, bool must_call, uint32_t from, uint32_t to);
#endif
