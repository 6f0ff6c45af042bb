/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "load/event.h"

enum { CHUNK_HEADER = 10 }; /* eight hexadecimal digits and the end of line */

#define TOKEN_HEAD_CHAT "\"choices\":[{\"index\":0,\"delta\":{\"content\":\""
#define TOKEN_TAIL_CHAT "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n"
#define TOKEN_HEAD_TEXT "\"choices\":[{\"index\":0,\"text\":\""
#define TOKEN_TAIL_TEXT "\",\"logprobs\":null,\"finish_reason\":null}]}\n\n"

static void add_id(const struct event_shape *s, struct buf *out, bool stream)
{
	buf_add(out, s->head + (stream ? 0 : 6), s->head_size - (stream ? 0 : 6)); /* without "data: " */
}

void event_shape_make(struct event_shape *s, const char *model, uint64_t number, bool chat)
{
	int size = snprintf(s->head, sizeof(s->head),
			    "data: {\"id\":\"%s-%" PRIu64
			    "\",\"object\":\"%s\",\"created\":%lld,\"model\":\"%s\",",
			    chat ? "chatcmpl" : "cmpl", number,
			    chat ? "chat.completion.chunk" : "text_completion", (long long)time(NULL), model);

	s->head_size = (size_t)size;
	s->chat = chat;
	s->letter = "w";
}

size_t event_begin(const struct event_shape *s, struct buf *out)
{
	if (s->chunked) {
		buf_reserve(out, CHUNK_HEADER);
		out->size += CHUNK_HEADER;
	}
	return out->size;
}

static void write_chunk_size(char *at, uint64_t size)
{
	for (int i = 7; i >= 0; i--, size >>= 4)
		at[i] = "0123456789abcdef"[size & 15];
	at[8] = '\r';
	at[9] = '\n';
}

void event_end(const struct event_shape *s, struct buf *out, size_t begun)
{
	if (!s->chunked)
		return;
	write_chunk_size(out->data + begun - CHUNK_HEADER, out->size - begun);
	buf_adds(out, "\r\n");
}

static void add_plain(const struct event_shape *s, struct buf *out, const char *text, bool with_id)
{
	size_t begun = event_begin(s, out);

	if (with_id)
		add_id(s, out, true);
	buf_adds(out, text);
	event_end(s, out, begun);
}

void event_add_role(const struct event_shape *s, struct buf *out)
{
	if (s->chat)
		add_plain(s, out,
			  "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
			  "\"logprobs\":null,\"finish_reason\":null}]}\n\n",
			  true);
}

void event_add_words(const struct event_shape *s, struct buf *out, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		if (i)
			buf_add(out, " ", 1);
		buf_adds(out, s->letter);
		buf_add_u64(out, (uint64_t)i + 1);
	}
}

static void add_token_head(const struct event_shape *s, struct buf *out)
{
	add_id(s, out, true);
	buf_adds(out, s->chat ? TOKEN_HEAD_CHAT : TOKEN_HEAD_TEXT);
}

void event_add_tokens(const struct event_shape *s, struct buf *out, uint32_t first, uint32_t count)
{
	size_t begun = event_begin(s, out);

	add_token_head(s, out);
	event_add_words(s, out, first, count);
	buf_adds(out, s->chat ? TOKEN_TAIL_CHAT : TOKEN_TAIL_TEXT);
	event_end(s, out, begun);
}

void event_add_broken(const struct event_shape *s, struct buf *out, uint32_t token)
{
	size_t begun = event_begin(s, out);

	add_token_head(s, out);
	event_add_words(s, out, token, 1);
	buf_adds(out, "\n\n");
	event_end(s, out, begun);
}

size_t event_letter_at(const struct event_shape *s, uint32_t i)
{
	return s->head_size + strlen(s->chat ? TOKEN_HEAD_CHAT : TOKEN_HEAD_TEXT) + (i ? 1 : 0);
}

void event_add_finish(const struct event_shape *s, struct buf *out)
{
	add_plain(
		s, out,
		s->chat ? "\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\"}]}\n\n"
			: "\"choices\":[{\"index\":0,\"text\":\"\",\"logprobs\":null,\"finish_reason\":\"length\"}]}\n\n",
		true);
}

static void add_usage(struct buf *out, const struct usage *u)
{
	buf_addf(out,
		 "\"usage\":{\"prompt_tokens\":%" PRIu64 ",\"completion_tokens\":%" PRIu64
		 ",\"total_tokens\":%" PRIu64 ",\"prompt_tokens_details\":{\"cached_tokens\":%" PRIu64 "}}}",
		 u->prompt_tokens, u->completion_tokens, u->prompt_tokens + u->completion_tokens,
		 u->cached_tokens);
}

void event_add_usage(const struct event_shape *s, struct buf *out, const struct usage *u)
{
	size_t begun = event_begin(s, out);

	add_id(s, out, true);
	buf_adds(out, "\"choices\":[],");
	add_usage(out, u);
	buf_adds(out, "\n\n");
	event_end(s, out, begun);
}

void event_add_error(const struct event_shape *s, struct buf *out)
{
	add_plain(
		s, out,
		"data: {\"error\":{\"message\":\"planted error\",\"type\":\"server_error\",\"param\":null,\"code\":500}}\n\n",
		false);
}

void event_add_done(const struct event_shape *s, struct buf *out)
{
	add_plain(s, out, "data: [DONE]\n\n", false);
}

void event_add_last_chunk(const struct event_shape *s, struct buf *out)
{
	if (s->chunked)
		buf_adds(out, "0\r\n\r\n");
}

void event_add_huge(const struct event_shape *s, struct buf *before, struct buf *after, uint64_t size)
{
	const char *tail = s->chat ? TOKEN_TAIL_CHAT : TOKEN_TAIL_TEXT;
	size_t begun = event_begin(s, before);

	add_token_head(s, before);
	if (s->chunked)
		write_chunk_size(before->data + begun - CHUNK_HEADER,
				 before->size - begun + size + strlen(tail));
	buf_adds(after, tail);
	if (s->chunked)
		buf_adds(after, "\r\n");
}

void event_add_body_begin(const struct event_shape *s, struct buf *out)
{
	struct event_shape whole = *s;
	char *part = s->chat ? strstr(whole.head, ".chunk") : NULL;

	if (part) { /* the object is chat.completion */
		memmove(part, part + 6, strlen(part + 6) + 1);
		whole.head_size -= 6;
	}
	add_id(&whole, out, false);
	buf_adds(out, s->chat ? "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\""
			      : TOKEN_HEAD_TEXT);
}

void event_add_body_end(const struct event_shape *s, struct buf *out, bool finish, const struct usage *u)
{
	buf_addf(out, "%s,\"logprobs\":null,\"finish_reason\":%s}]", s->chat ? "\"}" : "\"",
		 finish ? "\"length\"" : "null");
	if (u) {
		buf_adds(out, ",");
		add_usage(out, u);
	} else {
		buf_adds(out, "}");
	}
}

static const char *reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 302:
		return "Found";
	case 404:
		return "Not Found";
	case 429:
		return "Too Many Requests";
	case 503:
		return "Service Unavailable";
	default:
		return "Bad Request";
	}
}

void event_add_response(struct buf *out, int status, const char *fields, const char *type, const char *body,
			bool close)
{
	buf_addf(out, "HTTP/1.1 %d %s\r\n%s%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s", status,
		 reason(status), fields, close ? "Connection: close\r\n" : "", type, strlen(body), body);
}
