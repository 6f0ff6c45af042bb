/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/tokenizer.h"

/* Bytes of a character that begins with `lead`; 0: no character does. */
static size_t character_size(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Whether `byte` may be the second byte after `lead`: excludes overlong forms and surrogates. */
static bool may_follow(unsigned char lead, unsigned char byte)
{
	unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;

	return byte >= least && byte <= most;
}

static void give_up(struct token_stream *s, struct text *out)
{
	if (s->held_size)
		text_add(out, "\xef\xbf\xbd");
	s->held_size = 0;
}

static void add_byte(struct token_stream *s, unsigned char byte, struct text *out)
{
	if (s->held_size &&
	    (s->held_size == 1 ? !may_follow((unsigned char)s->held[0], byte) : (byte & 0xc0) != 0x80))
		give_up(s, out);
	s->held[s->held_size++] = (char)byte;
	if (!character_size((unsigned char)s->held[0])) {
		give_up(s, out);
	} else if (s->held_size == character_size((unsigned char)s->held[0])) {
		text_add_bytes(out, s->held, s->held_size);
		s->held_size = 0;
	}
}

void token_stream_add(struct token_stream *s, const struct tokenizer *t, int32_t id, bool control,
		      struct text *out)
{
	struct text bytes = {0};
	size_t i;

	tokenizer_decode(t, &id, 1, control, &bytes);
	for (i = 0; i < bytes.size; i++)
		add_byte(s, (unsigned char)bytes.data[i], out);
	text_release(&bytes);
}

void token_stream_end(struct token_stream *s, struct text *out)
{
	give_up(s, out);
}
