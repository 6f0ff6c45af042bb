/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/call_form.h"
#include "text/chat/tool_call.h"

/* Whether the template's parser finds a call in this text. */
static bool finds_call(const struct template *t, const char *text)
{
	struct tool_calls calls = {0};
	struct error err = {0};
	bool found = !tool_calls_read(&calls, t, text, &err) && calls.count == 1;

	tool_calls_release(&calls);
	return found;
}

enum call_form call_form_of(const struct template *t)
{
	if (!template_has_tools(t))
		return CALL_FORM_NONE;
	if (finds_call(t, "<tool_call>{\"name\": \"f\"}</tool_call>"))
		return CALL_FORM_MARKED;
	return finds_call(t, "{\"name\": \"f\", \"parameters\": {}}") ? CALL_FORM_BARE : CALL_FORM_NONE;
}

const char *call_form_name(enum call_form form)
{
	static const char *const names[] = {
		[CALL_FORM_NONE] = "", [CALL_FORM_MARKED] = "chatml", [CALL_FORM_BARE] = "llama"};

	return names[form];
}
