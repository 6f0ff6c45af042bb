/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/body/body.h"

#include "serve/protocol/body/json_cost.h"
#include "serve/protocol/fields.h"

bool body_parse(json_t **body, const char *text, size_t size, struct api_error *err)
{
	json_error_t why;
	size_t cost = json_cost(text, size);

	if (cost > REQUEST_JSON_COST_MOST)
		return api_fail(
			err, 413, "body_too_large",
			"the body has too many JSON values: they would take about %zu MiB of memory, and "
			"%d MiB is the most",
			cost >> 14, REQUEST_JSON_COST_MOST >> 14);
	*body = json_loadb(text, size, JSON_ALLOW_NUL, &why);
	if (!*body)
		return api_wrong(err, "", "the body is not JSON at line %d, column %d (%s)", why.line,
				 why.column, why.text);
	if (!json_is_object(*body))
		return api_wrong(err, "", "the body must be a JSON object, not %s", field_type_name(*body));
	return true;
}
