/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are an answer with figures that fit together. The first byte says how it arrived. */
#include "fuzz.h"

#include "load/answer/answer.h"

enum { STAMPS = 8 };

static void check(const struct load_record *r, const struct load_answer *a,
		  const struct load_answer_text *text)
{
	struct error err = {0};
	struct load_record back;
	struct text line = {0};

	FUZZ_CHECK(r->gap_count == (r->chunks ? r->chunks - 1 : 0));
	FUZZ_CHECK(r->chunks == 0 ||
		   (r->first_token_ns <= r->last_token_ns && r->last_token_ns <= r->end_ns));
	FUZZ_CHECK(r->chunks <= a->size && text->calls <= a->size);
	FUZZ_CHECK(text->content.size + text->reasoning.size <= a->size);
	FUZZ_CHECK(r->error == LOAD_ERROR_NONE || r->error == LOAD_ERROR_CUT ||
		   r->error == LOAD_ERROR_GARBAGE || r->error == LOAD_ERROR_SERVER);
	FUZZ_CHECK(!a->stream || r->error != LOAD_ERROR_NONE || text->finish[0] ||
		   !(r->flags & LOAD_FLAG_NO_DONE));
	load_record_write(&line, r);
	FUZZ_CHECK(!load_record_read(&back, line.data, line.size - 1, &err));
	load_record_release(&back);
	text_release(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t kind = size ? data[0] : 0;
	struct load_stamp stamp[STAMPS];
	struct load_record r = {.first_token_ns = LOAD_NEVER,
				.last_token_ns = LOAD_NEVER,
				.first_byte_ns = LOAD_NEVER,
				.end_ns = 1000 * STAMPS,
				.output_counted = LOAD_UNKNOWN};
	struct load_answer a = {.stamp = stamp,
				.stamps = kind & 8 ? STAMPS : 0,
				.stream = kind & 1,
				.completion = kind & 2,
				.usage = kind & 4};
	struct load_answer_text text;
	struct error err = {0};
	char *body;

	a.size = size ? size - 1 : 0;
	body = malloc(a.size ? a.size : 1);
	if (!body)
		abort();
	if (a.size)
		memcpy(body, data + 1, a.size);
	a.bytes = body;
	for (size_t i = 0; i < STAMPS; i++)
		stamp[i] = (struct load_stamp){1000 * (i + 1), a.size * (i + 1) / STAMPS};
	FUZZ_CHECK(load_answer_read(&a, &r, &text, &err) == STATUS_OK);
	check(&r, &a, &text);
	load_answer_text_release(&text);
	load_record_release(&r);
	free(body);
	return 0;
}
