/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve/serve.h"
#include "cmd/shared/show.h"

static double number(const json_t *o, const char *name)
{
	return json_number_value(json_object_get(o, name));
}

void serve_show_ready(const struct serving *s)
{
	char buffer[256];
	const char *name = serve_name(s->o, buffer);
	const char *scheme = s->o->certificate ? "https" : "http";
	const bool any = !strcmp(s->o->host, "0.0.0.0") || !strcmp(s->o->host, "::");
	const char *host = any ? "127.0.0.1" : s->o->host;
	const char *open = strchr(host, ':') && *host != '[' ? "[" : "", *close = *open ? "]" : "";
	const double tokens = number(s->ready, "pages") * number(s->ready, "page_tokens");

	printf("%s on %s: loaded in %.1f s, weights %.2f GB, KV cache %.2f GB for %.0f tokens, at most %.0f "
	       "sequences of %.0f tokens\n",
	       name, json_string_value(json_object_get(s->ready, "device")), number(s->ready, "load_s"),
	       number(s->ready, "weight_bytes") * 1e-9, number(s->ready, "cache_bytes") * 1e-9, tokens,
	       number(s->ready, "sequences"), number(s->ready, "context"));
	if (json_is_true(json_object_get(s->ready, "shared")))
		printf("another program has memory on this GPU, so steps may be slower; end it and start again, "
		       "or choose another GPU with CUDA_VISIBLE_DEVICES\n");
	if (number(s->ready, "measured_rows") > 0)
		printf("--deterministic: a step of %.0f sequences takes %.3g ms, and %.3g ms without "
		       "the option\n",
		       number(s->ready, "measured_rows"), number(s->ready, "deterministic_s") * 1e3,
		       number(s->ready, "ordinary_s") * 1e3);
	for (int32_t i = 0; s->o->adapters.count > 1 && i < s->o->adapters.count; i++)
		printf("adapter %s: %s\n", s->o->adapters.name[i], s->o->adapters.dir[i]);
	printf("API and chat page: %s://%s%s%s:%u\n", scheme, open, host, close, (unsigned)s->port);
	printf("curl %s%s%s://%s%s%s:%u/v1/chat/completions -H 'Content-Type: application/json' -d "
	       "'{\"model\": \"%s\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'\n",
	       s->o->certificate ? "-k " : "", s->o->api_keys ? "-H 'Authorization: Bearer KEY' " : "",
	       scheme, open, host, close, (unsigned)s->port, name);
	printf("run directory: %s\n", s->record.dir);
	show_flush();
}
