/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text/characters.h"
#include "text/tokenizer/tokenizer.h"

void token_stream_add(struct token_stream *s, const struct tokenizer *t, int32_t id, bool control,
		      struct text *out)
{
	struct text bytes = {0};

	tokenizer_decode(t, &id, 1, control, &bytes);
	characters_add(s->held, &s->held_size, text_str(&bytes), bytes.size, out);
	text_release(&bytes);
}

void token_stream_end(struct token_stream *s, struct text *out)
{
	characters_end(&s->held_size, out);
}
