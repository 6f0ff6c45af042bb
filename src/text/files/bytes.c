/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a vocabulary of bytes: id = byte, followed by the markers of chats. */
#include "text/files/tokenizer_files.h"

/* Markers of Qwen's and Llama's vocabularies. SPECIAL ones are left out of text for users. */
static const struct {
	const char *text;
	bool special;
} markers[] = {
	{"<|endoftext|>", true},       {"<|im_start|>", true},
	{"<|im_end|>", true},	       {"<tool_call>", false},
	{"</tool_call>", false},       {"<tool_response>", false},
	{"</tool_response>", false},   {"<think>", false},
	{"</think>", false},	       {"<|begin_of_text|>", true},
	{"<|start_header_id|>", true}, {"<|end_header_id|>", true},
	{"<|eot_id|>", true},	       {"<|eom_id|>", true},
	{"<|python_tag|>", false},
};
enum { BYTES = 256, END_OF_TEXT = BYTES, IM_END = BYTES + 2 };

/* The published ChatML template, with the markers above. */
static const char chat_template[] =
	"{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
	"'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% "
	"endif "
	"%}";

/* GPT-2's character for a byte: the byte itself if printable, else the next unused character from 256 on. */
static void character(int byte, int *spare, char out[3])
{
	bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
	int code = prints ? byte : BYTES + (*spare)++;

	out[0] = (char)(code < 0x80 ? code : 0xc0 | code >> 6);
	out[1] = (char)(code < 0x80 ? 0 : 0x80 | (code & 0x3f));
	out[2] = 0;
}

enum status tokenizer_files_of_bytes(const char *dir, struct error *err)
{
	struct tokenizer_facts f = {
		.vocab = json_object(),
		.merges = json_array(),
		.added = json_array(),
		.pre = "qwen2",
		.eos = "<|im_end|>",
		.pad = "<|endoftext|>",
		.bos_id = -1,
		.eos_id = IM_END,
		.pad_id = END_OF_TEXT,
		.chat_template = chat_template,
	};
	char text[3];
	enum status st;
	int spare = 0;

	for (int byte = 0; byte < BYTES; byte++) {
		character(byte, &spare, text);
		json_object_set_new(f.vocab, text, json_integer(byte));
	}
	for (int i = 0; i < (int)(sizeof(markers) / sizeof(markers[0])); i++)
		json_array_append_new(f.added,
				      tokenizer_files_added(BYTES + i, markers[i].text, markers[i].special));
	st = tokenizer_files_write(dir, &f, "bytes", err);
	json_decref(f.vocab);
	json_decref(f.merges);
	json_decref(f.added);
	return st;
}
