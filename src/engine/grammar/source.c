/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/source.h"
#include "core/text/text.h"

json_t *grammar_source_tool_calls(const struct grammar_tool_calls *c)
{
	return json_pack("{ss ss sO ss ss* sb sO*}", "type", "tool_calls", "format", c->format, "tools",
			 c->tools, "mode", c->mode, "name", c->name, "parallel", c->parallel, "answer",
			 c->answer);
}

char *grammar_source_after_thought(const char *source, bool open)
{
	struct text longer = {0};

	text_add(&longer, open ? "{" : "{\"opening\":\"<think>\",");
	text_add(&longer, "\"after\":\"</think>\",");
	text_add(&longer, source + 1);
	if (longer.failed)
		text_release(&longer);
	return longer.data;
}
