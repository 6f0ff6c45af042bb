/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of requests, for tests that send them to a server or count their tokens by other programs.
 *
 * usage: load_bodies TOKENIZER TEMPLATE chat|completion COUNT MOST TURNS
 * TEMPLATE: a name, or "own". Each line of the output is the number of prompt tokens that the body asks for,
 * a blank, and the body. Prompts have random lengths up to MOST; every third has a shared prefix, and every
 * fourth blocks of a trace. Between turns the server is taken to have answered with a fixed text.
 */
#include "core/math/random.h"
#include "load/content/content.h"

static const char answer[] = "So be it: 42 \"times\"\n\n  \xe4\xbd\xa0\xe5\xa5\xbd, isn't it?";

static int fail(const struct error *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 1;
}

static struct load_request request_of(uint32_t i, uint32_t turn, uint32_t least, uint32_t most)
{
	static const uint32_t blocks[] = {1, 2, 3, 4};
	struct load_request r = {.turn = turn, .source = (uint64_t)i * 100 + turn, .output_tokens = 2};

	r.prompt_tokens = i ? least + random_u32(1, turn, i) % (most - least + 1) : least;
	if (i % 3 == 1 && !turn) {
		r.prefix = 1 + i % 2;
		r.prefix_tokens = 33;
	}
	if (i % 4 == 2 && !turn) {
		r.blocks = blocks;
		r.block_count = 4;
	}
	return r;
}

static enum status say(struct load_worker *w, uint32_t i, uint32_t turns, uint32_t least, uint32_t most,
		       struct error *err)
{
	struct load_dialogue *d = NULL;
	enum status st = turns > 1 ? load_dialogue_create(&d, err) : STATUS_OK;

	for (uint32_t turn = 0; !st && turn < turns; turn++) {
		const struct load_request r = request_of(i, turn, least, most);
		struct load_asked asked;
		struct text body = {0};

		st = load_worker_body(w, &r, i, d, &body, &asked, err);
		if (!st)
			printf("%u %s\n", asked.prompt_tokens, body.data);
		text_release(&body);
		if (!st && d)
			st = load_dialogue_answer(d, answer, strlen(answer), err);
	}
	load_dialogue_destroy(&d);
	return st;
}

int main(int argc, char **argv)
{
	struct load_content_spec spec = {
		.salt = "salt", .model = "m", .temperature = 0, .seed = -1, .ignore_eos = true};
	struct load_content *c = NULL;
	struct load_worker *w = NULL;
	struct error err = {0};
	enum status st;
	uint32_t count, most, turns;

	if (argc != 7)
		return 64;
	spec.tokenizer = argv[1];
	spec.chat_template = strcmp(argv[2], "own") ? argv[2] : NULL;
	spec.completion = !strcmp(argv[3], "completion");
	spec.model = getenv("LOAD_MODEL") ? getenv("LOAD_MODEL") : "m";
	count = (uint32_t)strtoul(argv[4], NULL, 10);
	most = (uint32_t)strtoul(argv[5], NULL, 10);
	turns = (uint32_t)strtoul(argv[6], NULL, 10);
	st = load_content_open(&c, &spec, &err);
	if (!st)
		st = load_worker_create(&w, c, &err);
	for (uint32_t i = 0; !st && i < count; i++)
		st = say(w, i, turns, load_content_template_tokens(c) + 2, most, &err);
	load_worker_destroy(&w);
	load_content_close(&c);
	return st ? fail(&err) : 0;
}
