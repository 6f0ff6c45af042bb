/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a tokenizer or a refusal that names the file; what it encodes decodes to as many bytes at
 * most. */
#include "fuzz.h"

#include "text/tokenizer/internal.h"

static const char sample[] =
	"Hello  world,\n\n I'll pay 123 <|im_end|> na\xc3\xafve e\xcc\x81 \xf0\x9f\x99\x82";

/* tokenizer_open's own way, from memory. */
static void encode(struct tokenizer *t)
{
	struct tokenizer_worker *w = NULL;
	struct token_list ids = {0};
	struct text back = {0};
	struct error err = {0};
	enum status st = tokenizer_worker_create(&w, t, &err);

	FUZZ_CHECK(!st);
	st = tokenizer_encode(w, sample, sizeof(sample) - 1, ADDED_ALL, &ids, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	for (size_t i = 0; i < ids.count; i++)
		FUZZ_CHECK(ids.id[i] >= 0 && ids.id[i] < tokenizer_size(t));
	tokenizer_decode(t, ids.id, ids.count, true, &back);
	FUZZ_CHECK(back.size < sizeof(sample)); /* lstrip and rstrip swallow blanks, NFC shortens */
	text_release(&back);
	token_list_release(&ids);
	tokenizer_worker_destroy(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tokenizer *t = calloc(1, sizeof(*t));
	char *text = fuzz_text(data, size);
	struct error err = {0};
	enum status st;

	FUZZ_CHECK(t);
	t->bos = t->eos = -1;
	st = tokenizer_parse_json(t, "input", text, size, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT || st == STATUS_UNSUPPORTED ||
		   st == STATUS_UNAVAILABLE);
	FUZZ_CHECK(!st || !strncmp(err.text, "input:", 6));
	if (!st)
		encode(t);
	tokenizer_close(&t);
	free(text);
	return 0;
}
