/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools in the formats that chat templates use (model/chat). */
#ifndef ENGINE_GRAMMAR_SCHEMA_TOOLS_H
#define ENGINE_GRAMMAR_SCHEMA_TOOLS_H
#include "engine/grammar/schema/schema.h"

/* Builds the answers that a source of type "tool_calls" allows, from one node to another. */
void tools_build(struct builder *b, const json_t *source, uint32_t from, uint32_t to);
#endif
