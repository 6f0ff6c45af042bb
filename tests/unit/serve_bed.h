/* SPDX-License-Identifier: Apache-2.0 */
/* A prompter of a small tokenizer, and requests read with it. */
#ifndef TESTS_SERVE_BED_H
#define TESTS_SERVE_BED_H
#include "test.h"

#include "serve/protocol/answer.h"

struct serve_bed {
	struct prompter *prompter;
	struct prompter_worker *worker;
	struct request_rules rules;
};

static inline void serve_bed_open(struct serve_bed *b, const char *template)
{
	static const char *const models[] = {"base", "alias", NULL}, *const adapters[] = {"first", "second", NULL};
	struct error err = {0};

	if (prompter_open(&b->prompter, SOURCE_DIR "/tests/data/tokenizer/qwen.json", template, &err) ||
	    prompter_worker_create(&b->worker, b->prompter, &err))
		fail_msg("%s", err.text);
	b->rules = (struct request_rules){.prompter = b->prompter, .models = models, .adapters = adapters,
					  .messages_most = 8, .prompt_most = 1000};
}

static inline void serve_bed_close(struct serve_bed *b)
{
	prompter_worker_destroy(&b->worker);
	prompter_close(&b->prompter);
}

/* NULL: *err is set. */
static inline struct request *serve_bed_read(struct serve_bed *b, enum protocol protocol, const char *body,
					     struct api_error *err)
{
	struct request *r;

	*err = (struct api_error){0};
	request_read(&r, protocol, body, strlen(body), &b->rules, b->worker, err);
	assert_true(!r == (err->http != 0));
	return r;
}

static inline struct request *serve_bed_good(struct serve_bed *b, enum protocol protocol, const char *body)
{
	struct api_error err;
	struct request *r = serve_bed_read(b, protocol, body, &err);

	if (!r)
		fail_msg("%s: %s", body, err.message);
	return r;
}
#endif
