/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random texts of grammars, for tests/oracles/grammar_schemas.py, and the time of masks.
 *
 * usage: grammar_walk VOCAB WALKS < requests
 * VOCAB: a file with one token per line: its bytes in base64 and its rank (tiktoken's format); or "bytes".
 * Each line of standard input is {"source": {..}, "try": ["text", ..]}. Each line of the output is
 * {"texts": [".."], "takes": [true, ..], "warnings": [".."], "error": "..", "cold_us": n, "warm_us": n}:
 * texts of random walks through the mask, whether the grammar takes each text to try, and the mean time of
 * the first and of all further masks. A text that is not UTF-8 is null.
 */
#include <jansson.h>

#include "core/clock.h"
#include "core/text/text.h"
#include "engine/grammar/grammar.h"

enum { TOKENS_MOST = 200000, WALK_MOST = 2000, WALK_LONG = 60 };

static struct {
	struct grammar_token *tokens;
	size_t count;
	int32_t end, byte[256];
	struct grammar_vocab *vocab;
} own;

static uint64_t random_state = 1;

static uint32_t next_random(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 33) % below);
}

static _Noreturn void stop(const char *why)
{
	fprintf(stderr, "grammar_walk: %s\n", why);
	exit(1);
}

static size_t decode_base64(const char *text, size_t size, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0, held = 0;
	size_t used = 0;

	for (size_t i = 0; i < size && text[i] != '='; i++) {
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit)
			stop("the vocabulary is not base64");
		held = held << 6 | (uint32_t)(digit - digits);
		bits += 6;
		if (bits >= 8)
			out[used++] = (char)(held >> (bits -= 8));
	}
	return used;
}

static void add_token(const char *bytes, size_t size, enum grammar_token_kind kind)
{
	char *copy = malloc(size + 1);

	if (!copy || own.count == TOKENS_MOST)
		stop("the vocabulary is too large");
	memcpy(copy, bytes, size);
	if (size == 1)
		own.byte[(uint8_t)bytes[0]] = (int32_t)own.count;
	own.tokens[own.count++] = (struct grammar_token){copy, size, kind};
}

static void read_vocab(const char *path)
{
	FILE *file = strcmp(path, "bytes") != 0 ? fopen(path, "r") : NULL;
	char line[4096], bytes[4096];
	struct error err = {0};

	own.tokens = calloc(TOKENS_MOST, sizeof(*own.tokens));
	if (!own.tokens)
		stop("out of memory");
	if (!file)
		for (int i = 0; i < 256; i++)
			add_token(&(char){(char)i}, 1, GRAMMAR_TOKEN_TEXT);
	while (file && fgets(line, sizeof(line), file)) {
		size_t size = strcspn(line, " \n");

		if (size)
			add_token(bytes, decode_base64(line, size, bytes), GRAMMAR_TOKEN_TEXT);
	}
	if (file)
		fclose(file);
	own.end = (int32_t)own.count;
	add_token("", 0, GRAMMAR_TOKEN_END);
	add_token("<tool_call>", 11, GRAMMAR_TOKEN_TEXT);
	add_token("</tool_call>", 12, GRAMMAR_TOKEN_TEXT);
	if (grammar_vocab_create(&own.vocab, own.tokens, own.count, &err))
		stop(err.text);
}

static bool allowed(const uint32_t *mask, int32_t id)
{
	return mask[id / 32] >> id % 32 & 1;
}

/* Ends what is open if the text is long already; otherwise any allowed token, or a byte. -1: nothing. */
static int32_t choose(const uint32_t *mask, int tokens)
{
	static const char closing[] = "\"}]>,:0";
	size_t words = grammar_vocab_words(own.vocab);
	uint32_t first = next_random((uint32_t)own.count);

	if (allowed(mask, own.end) && (tokens > WALK_LONG || !next_random(3)))
		return own.end;
	if (tokens > WALK_LONG || !next_random(3))
		for (const char *c = closing; *c; c++)
			if (allowed(mask, own.byte[(uint8_t)*c]))
				return own.byte[(uint8_t)*c];
	for (size_t i = 0; i <= words; i++) {
		size_t word = (first / 32 + i) % words;
		uint32_t bits = i ? mask[word] : mask[word] & ~0u << first % 32;

		if (bits)
			return (int32_t)(word * 32 + (size_t)__builtin_ctz(bits));
	}
	return -1;
}

/* One text. False: no token was left, or it did not end. */
static bool walk(struct grammar *g, struct text *out, double *seconds, size_t *masks)
{
	uint32_t *mask = malloc(grammar_vocab_words(own.vocab) * sizeof(*mask));
	struct grammar_state *s = NULL;
	struct error err = {0};
	bool done = false;

	if (!mask || grammar_state_create(&s, g, &err))
		stop(err.text);
	for (int tokens = 0; tokens < WALK_MOST; tokens++) {
		double begin = clock_now_s();
		int32_t id;

		if (grammar_mask(s, mask, &err))
			stop(err.text);
		*seconds += clock_now_s() - begin;
		++*masks;
		id = choose(mask, tokens);
		if (id < 0)
			break;
		if (id == own.end) {
			done = grammar_accept(s, id) == GRAMMAR_ENDED;
			break;
		}
		if (grammar_accept(s, id) != GRAMMAR_ACCEPTED)
			stop("accept refuses a token of the mask");
		text_add_bytes(out, own.tokens[id].bytes, own.tokens[id].size);
	}
	grammar_state_destroy(&s);
	free(mask);
	return done;
}

static bool takes(struct grammar *g, const char *text, size_t size)
{
	struct grammar_state *s = NULL;
	struct error err = {0};
	bool yes;

	if (grammar_state_create(&s, g, &err))
		stop(err.text);
	yes = grammar_accept_bytes(s, text, size) == GRAMMAR_ACCEPTED && grammar_is_complete(s);
	grammar_state_destroy(&s);
	return yes;
}

static void walks(struct grammar *g, int count, json_t *answer)
{
	json_t *texts = json_array();
	double cold = 0, warm = 0;
	size_t cold_masks = 0, warm_masks = 0;
	int unfinished = 0;

	for (int i = 0; i < count; i++) {
		struct text out = {0};
		json_t *text;

		if (!walk(g, &out, i ? &warm : &cold, i ? &warm_masks : &cold_masks)) {
			unfinished++;
		} else {
			text = json_stringn(text_str(&out), out.size);
			json_array_append_new(texts, text ? text : json_null());
		}
		text_release(&out);
	}
	json_object_set_new(answer, "texts", texts);
	json_object_set_new(answer, "unfinished", json_integer(unfinished));
	json_object_set_new(answer, "cold_us", json_real(cold_masks ? cold / (double)cold_masks * 1e6 : 0));
	json_object_set_new(answer, "warm_us", json_real(warm_masks ? warm / (double)warm_masks * 1e6 : 0));
}

static void answer_line(const char *line, int count)
{
	json_t *request = json_loads(line, 0, NULL), *answer = json_object(), *list, *text;
	char *source = json_dumps(json_object_get(request, "source"), JSON_COMPACT), *shown;
	struct error err = {0};
	struct grammar *g = NULL;
	double begin = clock_now_s();
	size_t i;

	if (!source)
		stop("a request is not JSON");
	if (grammar_compile(&g, own.vocab, source, strlen(source), NULL, &err)) {
		json_object_set_new(answer, "error", json_string(err.text));
	} else {
		json_object_set_new(answer, "compile_us", json_real((clock_now_s() - begin) * 1e6));
		list = json_array();
		json_array_foreach(json_object_get(request, "try"), i, text) json_array_append_new(
			list, json_boolean(takes(g, json_string_value(text), json_string_length(text))));
		json_object_set_new(answer, "takes", list);
		list = json_array();
		for (i = 0; i < grammar_warnings(g) && i < GRAMMAR_WARNINGS_MOST; i++)
			json_array_append_new(list, json_string(grammar_warning(g, i)));
		json_object_set_new(answer, "warnings", list);
		walks(g, count, answer);
	}
	shown = json_dumps(answer, JSON_COMPACT);
	puts(shown);
	free(shown);
	free(source);
	grammar_release(&g);
	json_decref(request);
	json_decref(answer);
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t room = 0;

	if (argc != 3)
		stop("usage: grammar_walk VOCAB WALKS < requests");
	read_vocab(argv[1]);
	while (getline(&line, &room, stdin) > 0)
		answer_line(line, (int)strtol(argv[2], NULL, 10));
	free(line);
	grammar_vocab_destroy(&own.vocab);
	for (size_t i = 0; i < own.count; i++)
		free((char *)(uintptr_t)own.tokens[i].bytes);
	free(own.tokens);
	return 0;
}
