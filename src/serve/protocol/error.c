/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/error.h"

#include "serve/protocol/json_out.h"

static const char *type_of(int http)
{
	switch (http) {
	case 400:
	case 405:
	case 413:
	case 431:
		return "invalid_request_error";
	case 401:
		return "authentication_error";
	case 403:
		return "permission_error";
	case 404:
		return "not_found_error";
	case 429:
		return "rate_limit_error";
	case 503:
		return "service_unavailable_error";
	default:
		return "server_error";
	}
}

static void set(struct api_error *e, int http, const char *code, const char *param, const char *format,
		va_list args)
{
	if (e->http)
		return;
	e->http = http;
	e->type = type_of(http);
	e->code = code;
	text_copy(e->param, sizeof(e->param), param);
	vsnprintf(e->message, sizeof(e->message), format, args);
}

bool api_wrong(struct api_error *e, const char *param, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set(e, 400, NULL, param, format, args);
	va_end(args);
	return false;
}

bool api_fail(struct api_error *e, int http, const char *code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set(e, http, code, "", format, args);
	va_end(args);
	return false;
}

bool api_from(struct api_error *e, const char *param, const struct error *err)
{
	if (err->status == STATUS_BAD_INPUT || err->status == STATUS_UNSUPPORTED)
		return api_wrong(e, param, "%s", err->text);
	return api_fail(e, 500, NULL, "%s", err->text);
}

static void add_or_null(struct text *out, const char *text)
{
	if (text && *text)
		json_out_text(out, text);
	else
		text_add(out, "null");
}

void api_error_body(struct text *out, const struct api_error *e)
{
	text_add(out, "{\"error\":{\"message\":");
	json_out_text(out, e->message);
	text_addf(out, ",\"type\":\"%s\",\"param\":", e->type);
	add_or_null(out, e->param);
	text_add(out, ",\"code\":");
	add_or_null(out, e->code);
	text_add(out, "}}");
}

void api_error_body_messages(struct text *out, const struct api_error *e)
{
	const char *type = e->http == 503 ? "overloaded_error" : e->http >= 500 ? "api_error" : e->type;

	text_addf(out, "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":",
		  e->http == 413 ? "request_too_large" : type);
	json_out_text(out, e->message);
	text_add(out, "}}");
}
