/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the body of each endpoint: a request whose values are within their limits, or an error for the client that is
 * valid JSON. */
#include "fuzz.h"

#include "serve/protocol/request.h"

static struct prompter *prompter;
static struct prompter_worker *worker;

static void open_parts(void)
{
	struct error err = {0};

	if (prompter_open(&prompter, SOURCE_DIR "/tests/data/tokenizer/qwen.json", "qwen3", &err) ||
	    prompter_worker_create(&worker, prompter, &err))
		fuzz_skip_without("tokenizers", &err);
}

static void check_error(const struct api_error *e)
{
	struct text body = {0};
	json_t *json;

	FUZZ_CHECK(e->http == 400 || e->http == 404);
	FUZZ_CHECK(*e->message);
	api_error_body(&body, e);
	json = json_loadb(text_str(&body), body.size, 0, NULL);
	FUZZ_CHECK(json_is_object(json_object_get(json, "error")));
	json_decref(json);
	body.size = 0;
	api_error_body_messages(&body, e);
	json = json_loadb(text_str(&body), body.size, 0, NULL);
	FUZZ_CHECK(json_is_object(json_object_get(json, "error")));
	json_decref(json);
	text_release(&body);
}

static void check_request(const struct request *r)
{
	const struct engine_sampling *s = &r->engine.sampling;

	FUZZ_CHECK(s->temperature >= 0 && s->temperature <= 2 && s->top_p > 0 && s->top_p <= 1);
	FUZZ_CHECK(s->min_p >= 0 && s->min_p <= 1 && s->repetition > 0 && s->top_k >= 0);
	FUZZ_CHECK(r->engine.stops <= ENGINE_STOPS_MOST && r->engine.biases <= ENGINE_BIAS_MOST);
	FUZZ_CHECK(r->engine.logprobs >= -1 && r->engine.logprobs <= ENGINE_TOP_MOST);
	FUZZ_CHECK(r->n >= 1 && r->stop_count <= REQUEST_STOPS_MOST);
	FUZZ_CHECK(r->protocol > PROTOCOL_MESSAGES || (r->prompt_count && r->prompt_count * r->n <= REQUEST_CHOICES_MOST));
	for (size_t i = 0; i < r->prompt_count; i++)
		for (size_t k = 0; k < r->prompts[i].count; k++)
			FUZZ_CHECK(r->prompts[i].ids[k] >= 0 && r->prompts[i].ids[k] < prompter_size(prompter));
	if (r->grammar) {
		json_t *grammar = json_loads(r->grammar, 0, NULL);

		FUZZ_CHECK(json_is_object(grammar));
		json_decref(grammar);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const models[] = {"base", NULL}, *const adapters[] = {"adapter", NULL};
	struct request_rules rules = {.models = models, .adapters = adapters, .messages_most = 64, .prompt_most = 100000};

	if (!worker)
		open_parts();
	if (size > 65536)
		return 0;
	rules.prompter = prompter;
	for (int protocol = PROTOCOL_CHAT; protocol <= PROTOCOL_DETOKENIZE; protocol++) {
		char *body = fuzz_text(data, size);
		struct api_error err = {0};
		struct request *r;
		bool good = request_read(&r, (enum protocol)protocol, body, size, &rules, worker, &err);

		FUZZ_CHECK(good == (r != NULL) && good == !err.http);
		if (good)
			check_request(r);
		else
			check_error(&err);
		request_destroy(&r);
		free(body);
	}
	return 0;
}
