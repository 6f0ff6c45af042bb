/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions, choices, GBNF and tool calls as grammars. */
#include "grammar_bed.h"
#include "text/chat/tool_call.h"

static void regex(const char *pattern, const char *const *yes, const char *const *no)
{
	struct text source = {0};

	text_addf(&source, "{\"type\": \"regex\", \"pattern\": \"%s\"}", pattern);
	bed_expect(text_str(&source), yes, no);
	text_release(&source);
}

static void bad_regex(const char *pattern, enum status status, const char *words)
{
	struct text source = {0};

	text_addf(&source, "{\"type\": \"regex\", \"pattern\": \"%s\"}", pattern);
	bed_refused(text_str(&source), NULL, status, words);
	text_release(&source);
}

static void test_regex__constructs(void **state)
{
	(void)state;
	regex("a|bc|", YES("a", "bc", ""), NO("b", "abc"));
	regex("^(?:ab){2,3}?$", YES("abab", "ababab"), NO("ab", "abababab"));
	regex("a{0}b{2}c{1,}", YES("bbc", "bbccc"), NO("abbc", "bb"));
	regex("(?P<x>a)(?<y>b)*", YES("a", "abb"), NO("b"));
	regex("[a-c_^\\\\]-]+", YES("a^", "]-_"), NO("d", ""));
	regex("[^\\\\x00-\\\\x7f]", YES("\xc3\xa9", "\xf0\x9f\x98\x80"), NO("a", "\xc3", "\x80"));
	regex("\\\\d+\\\\s\\\\w", YES("12 a", "3\t_"), NO("a b", "12"));
	regex("[^\\\\s][^\\\\d][^\\\\W][^\\\\S]", YES("xxx ", "\xc3\xa9-_\t"),
	      NO(" xx ", "x1x ", "xx- ", "xxxx", "\xe3\x80\x80xx ", "x\xd9\xa1x "));
	regex("\\\\D\\\\W\\\\S", YES("a-b", "x \xc3\xa9"), NO("1-b", "aab", "a- "));
	regex("\\\\u00e9\\\\u{1F600}\\\\ud83d\\\\ude00", YES("\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80"),
	      NO("e"));
	regex(".+", YES("a\xe2\x82\xac"), NO("\n", "a\nb", "\xe2\x80\xa8"));
	regex("a{1,1000}", YES("a", "aaaaa"), NO(""));
	regex("(a{1,3}b){100,200}", NULL, NO("ab", "aaab"));
}

static void test_regex__refusals(void **state)
{
	(void)state;
	bad_regex("(", STATUS_BAD_INPUT, "byte 1: a group has no closing )");
	bad_regex("a)", STATUS_BAD_INPUT, "closes no group");
	bad_regex("[a", STATUS_BAD_INPUT, "no closing ]");
	bad_regex("[]a]", STATUS_UNSUPPORTED, "needs a backslash");
	bad_regex("[b-a]", STATUS_BAD_INPUT, "reversed");
	bad_regex("[a-\\\\d]", STATUS_BAD_INPUT, "reversed or has no end");
	bad_regex("[[:alpha:]]", STATUS_UNSUPPORTED, "POSIX");
	bad_regex("*a", STATUS_BAD_INPUT, "nothing to repeat");
	bad_regex("a**", STATUS_BAD_INPUT, "nothing to repeat");
	bad_regex("a*+", STATUS_UNSUPPORTED, "possessive");
	bad_regex("a{3,2}", STATUS_BAD_INPUT, "reversed");
	bad_regex("a{2000000}", STATUS_NO_RESOURCE, "1,000,000");
	bad_regex("a{,3}", STATUS_UNSUPPORTED, "{0,n}");
	bad_regex("(?=a)", STATUS_UNSUPPORTED, "lookaround");
	bad_regex("(?i)a", STATUS_UNSUPPORTED, "lookaround and flags");
	bad_regex("(a)\\\\1", STATUS_UNSUPPORTED, "escape");
	bad_regex("\\\\bx", STATUS_UNSUPPORTED, "escape");
	bad_regex("\\\\p{L}", STATUS_UNSUPPORTED, "escape");
	bad_regex("a\\\\", STATUS_BAD_INPUT, "ends with a backslash");
	bad_regex("\\\\xg0", STATUS_BAD_INPUT, "hexadecimal");
	bad_regex("\\\\ud800", STATUS_BAD_INPUT, "surrogate");
	bad_regex("\\\\u{110000}", STATUS_BAD_INPUT, "malformed");
	bad_regex("a(^b)", STATUS_UNSUPPORTED, "^ and $");
	bad_regex("a$b", STATUS_UNSUPPORTED, "^ and $");
	bad_regex("[a-a&&\\\\ud800]", STATUS_BAD_INPUT, "surrogate");
	bad_regex("(a*){100000}", STATUS_NO_RESOURCE, "limit: nodes");
}

static void test_choice(void **state)
{
	(void)state;
	bed_expect("{\"type\":\"choice\",\"choices\":[\"yes\",\"yesterday\",\"no\",\"\xc3\xa9\",\"yes\"]}",
		   YES("yes", "yesterday", "no", "\xc3\xa9"), NO("", "ye", "yesno", "\xc3"));
	bed_expect("{\"type\":\"choice\",\"choices\":[\"\"]}", YES(""), NO("a"));
	bed_refused("{\"type\":\"choice\",\"choices\":[]}", NULL, STATUS_BAD_INPUT, "at least one text");
	bed_refused("{\"type\":\"choice\",\"choices\":[1]}", NULL, STATUS_BAD_INPUT,
		    "choices[0]: not a text");
}

static void test_gbnf(void **state)
{
	(void)state;
	bed_expect(
		"{\"type\":\"grammar\",\"grammar\":\"# sums\\nroot ::= term ([-+] term)* \\\"\\\\n\\\"?\\n"
		"term ::= num | \\\"(\\\" root \\\")\\\"\\nnum ::= [0-9]+ ( # fraction\\n \\\".\\\" [0-9]{1,2} )?\\n\"}",
		YES("1", "12+3", "(1-2)+3.25", "((7))\n"), NO("", "+", "(1", "1.234"));
	bed_expect("{\"type\":\"grammar\",\"grammar\":\"root ::= [^\\\\n\\\\x41] . |\\n x{2} | x{3,}\\nx ::= "
		   "\\\"\\\\u00e9\\\\U0001F600\\\"\"}",
		   YES("a\n", "\xc3\xa9z", "\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9\xf0\x9f\x98\x80"),
		   NO("A\n", "\nA", "a"));
}

static void bad_gbnf(const char *text, enum status status, const char *words)
{
	struct text source = {0};

	text_addf(&source, "{\"type\": \"grammar\", \"grammar\": \"%s\"}", text);
	bed_refused(text_str(&source), NULL, status, words);
	text_release(&source);
}

static void test_gbnf__refusals(void **state)
{
	(void)state;
	bad_gbnf("", STATUS_BAD_INPUT, "no rule \"root\"");
	bad_gbnf("root ::= x", STATUS_BAD_INPUT, "line 1: rule \"x\" is not defined");
	bad_gbnf("root ::= [a]\\nroot ::= [b]", STATUS_BAD_INPUT, "line 2: a rule is defined twice");
	bad_gbnf("root = [a]", STATUS_BAD_INPUT, "expected ::=");
	bad_gbnf("::= [a]", STATUS_BAD_INPUT, "expected the name");
	bad_gbnf("root ::= [a", STATUS_BAD_INPUT, "does not end");
	bad_gbnf("root ::= [b-a]", STATUS_BAD_INPUT, "reversed");
	bad_gbnf("root ::= \\\"a", STATUS_BAD_INPUT, "does not end");
	bad_gbnf("root ::= \\\"\\\\q\\\"", STATUS_BAD_INPUT, "unknown escape");
	bad_gbnf("root ::= \\\"\\\\xz\\\"", STATUS_BAD_INPUT, "hexadecimal");
	bad_gbnf("root ::= \\\"\\\\ud800\\\"", STATUS_BAD_INPUT, "no Unicode character");
	bad_gbnf("root ::= ([a]", STATUS_BAD_INPUT, "no closing )");
	bad_gbnf("root ::= [a])", STATUS_BAD_INPUT, "expected an item");
	bad_gbnf("root ::= [a]{x}", STATUS_BAD_INPUT, "a repetition is not");
	bad_gbnf("root ::= [a]{3,2}", STATUS_BAD_INPUT, "a repetition is not");
	bad_gbnf("root ::= [a]{2000000}", STATUS_NO_RESOURCE, "1,000,000");
	bad_gbnf("root ::= root [a] | [b]", STATUS_UNSUPPORTED, "left recursion");
	bad_gbnf("root ::= x y\\ny ::= [a]\\nx ::= [b]* root", STATUS_UNSUPPORTED, "left recursion");
	bad_gbnf("root ::= x{100}\\nx ::= [a]?", STATUS_UNSUPPORTED, "may be empty");
	bad_gbnf("root ::= [a] root", STATUS_BAD_INPUT, "no text");
	bad_gbnf("abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij ::= [a]",
		 STATUS_NO_RESOURCE, "more than 64 characters");
	bad_gbnf("root ::= ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
		 STATUS_NO_RESOURCE, "nested more than 64");
}

#define TOOLS                                                                                                 \
	"\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\"," \
	"\"properties\":{\"x\":{\"type\":\"integer\"}},\"required\":[\"x\"]}}},"                              \
	"{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]"

static void test_tools__chatml(void **state)
{
	static const char f[] = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";
	static const char two[] =
		"Both.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>\n"
		"<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";

	(void)state;
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"auto\",\"parallel\":true," TOOLS
		   "}",
		   YES("", "It is 5.", "a < b <tool_cal> <<tool_cal", f, two),
		   NO("<tool_call>", "<tool_call>x", "<<tool_call>\n{}", "<tool_call>\n{\"name\": \"h\"",
		      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"1\"}}\n</tool_call>"));
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"required\"," TOOLS "}", YES(f),
		   NO("", "It is 5.", two + 6));
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"named\",\"name\":\"g\"," TOOLS
		   "}",
		   YES("<tool_call>{\"name\":\"g\",\"arguments\":{\"y\":[]}}</tool_call>"), NO("", f));
	bed_expect(
		"{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"required\",\"after\":\"</think>\"," TOOLS
		"}",
		YES("I <think> so</think>\n\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"),
		NO(f));
}

/* The model itself opens its thought, or leaves it out. */
static void test_thought__may_be_left_out_unless_the_prompt_opened_it(void **state)
{
#define THOUGHT "\"opening\":\"<think>\",\"after\":\"</think>\","
	static const char call[] = "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
	static const char thought_call[] = "<think>\n<tool_call>\n</think>\n\n"
					   "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";

	(void)state;
	bed_expect("{" THOUGHT "\"type\":\"json_schema\",\"schema\":{\"enum\":[\"xy\"]}}",
		   YES("\"xy\"", " \"xy\"", "  \n\n\"xy\"", "<think></think>\"xy\"", "\n<think>\nSo <think> \"z\"\n</think>\n\n\"xy\""),
		   NO("", "So</think>\"xy\"", "So <think></think>\"xy\"", "</think>\"xy\"", "<think>\"xy\"", "<think>So</think>",
		      "<think>So</think>z\"xy\"", "\"xy\"<think></think>", "<think></think><think></think>\"xy\""));
	bed_expect("{" THOUGHT "\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"required\"," TOOLS "}",
		   YES(call, thought_call), NO("", "So", thought_call + 7, "<think>So</think>\n\nSo"));
	bed_expect("{" THOUGHT "\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"auto\"," TOOLS "}",
		   YES("", "So", call, thought_call, "<think>So</think>\nSo"), NO("<think>So</think>\n<tool_call>"));
	bed_expect("{" THOUGHT "\"type\":\"regex\",\"pattern\":\"a\"}", YES("a", "\n<think></think>a"), NO("\na", " a"));
	/* the prompt opened it */
	bed_expect("{\"after\":\"</think>\",\"type\":\"choice\",\"choices\":[\"a\"]}", YES("So</think>a", "</think>\n\na"),
		   NO("a", "So", "<think>a"));
}

static void test_tools__llama_and_mistral(void **state)
{
	static const char f[] = "{\"name\": \"f\", \"parameters\": {\"x\": 1}}";

	(void)state;
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"auto\"," TOOLS "}",
		   YES("", "It is {5}.", "{\"nam", "{\"x\": 1}", f, "\n{\"name\":\"g\",\"parameters\":{}}"),
		   NO("{\"name\"", "{\"name\": 1}", " {\"name\": \"h\", \"parameters\": {}}"));
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"required\"," TOOLS "}", YES(f),
		   NO("", "a", "{\"name\": \"f\"}"));
	bed_expect(
		"{\"type\":\"tool_calls\",\"format\":\"mistral\",\"mode\":\"auto\",\"parallel\":true," TOOLS
		"}",
		YES("Hi [TOOL_CALLS", "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\": 1}}]",
		    "[TOOL_CALLS][{\"name\":\"g\",\"arguments\":{}}, {\"name\":\"g\",\"arguments\":{}}]"),
		NO("[TOOL_CALLS]", "[TOOL_CALLS] []", "[TOOL_CALLS] [{\"name\":\"f\",\"arguments\":{}}]"));
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"auto\",\"tools\":[]}",
		   YES("", "{\"name\""), NULL);
}

#define ANSWER                                                                                             \
	"\"answer\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\",\"properties\":{\"name\":" \
	"{\"enum\":[\"a\"]}},\"required\":[\"name\"],\"additionalProperties\":false}}"

/* A call, or an answer with a schema. */
static void test_tools__an_answer_may_have_a_schema(void **state)
{
	(void)state;
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"auto\"," ANSWER "," TOOLS "}",
		   YES("{\"name\": \"a\"}", "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>"),
		   NO("", "It is 5.", "{\"name\": \"b\"}", "{\"name\": \"a\"}<tool_call>"));
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"auto\"," ANSWER "," TOOLS "}",
		   YES("{\"name\": \"a\"}", "{\"name\": \"g\", \"parameters\": {}}"),
		   NO("", "a", "{\"name\": \"g\"}", "{\"name\": \"a\", \"parameters\": {}}"));
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"auto\",\"answer\":{\"type\":"
		   "\"json_object\"}," TOOLS "}",
		   YES("{}", "{\"b\":[1]}"), NO("", "[]"));
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"auto\"," ANSWER ",\"tools\":[]}",
		   YES("{\"name\": \"a\"}"), NO("", "b"));
	/* a call is required anyway */
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"required\"," ANSWER "," TOOLS "}",
		   YES("<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>"), NO("{\"name\": \"a\"}"));
	bed_refused("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"auto\",\"answer\":{\"type\":\"regex\","
		    "\"pattern\":\"a\"}," TOOLS "}",
		    NULL, STATUS_BAD_INPUT, "answer: \"type\" is not json_object or json_schema");
	bed_refused("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"auto\",\"answer\":{\"type\":"
		    "\"json_schema\",\"strict\":true,\"schema\":{\"not\":{}}}," TOOLS "}",
		    NULL, STATUS_UNSUPPORTED, "answer.schema: keyword \"not\"");
	/* strictness of the answer is not that of the tools */
	bed_expect("{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"auto\",\"answer\":{\"type\":\"json_schema\","
		   "\"strict\":true,\"schema\":{\"const\":1}},\"tools\":[{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
		   "\"properties\":{\"a\":{\"not\":{\"const\":1}}}}}]}",
		   YES("1"), NO("2"));
}

static void test_tools__refusals(void **state)
{
	(void)state;
	bed_refused("{\"type\":\"tool_calls\",\"mode\":\"auto\"," TOOLS "}", NULL, STATUS_BAD_INPUT,
		    "\"format\" is not");
	bed_refused("{\"type\":\"tool_calls\",\"format\":\"llama\"," TOOLS "}", NULL, STATUS_BAD_INPUT,
		    "\"mode\" is not");
	bed_refused("{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"named\"," TOOLS "}", NULL,
		    STATUS_BAD_INPUT, "mode named needs");
	bed_refused("{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"named\",\"name\":\"h\"," TOOLS
		    "}",
		    NULL, STATUS_BAD_INPUT, "no tool has the name \"h\"");
	bed_refused("{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"auto\",\"tools\":1}", NULL,
		    STATUS_BAD_INPUT, "\"tools\" is not a list");
	bed_refused("{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"required\",\"tools\":[]}", NULL,
		    STATUS_BAD_INPUT, "\"tools\" is empty");
	bed_refused("{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"auto\",\"tools\":[{}]}", NULL,
		    STATUS_BAD_INPUT, "tools[0]: a tool has no name");
	bed_refused(
		"{\"type\":\"tool_calls\",\"format\":\"llama\",\"mode\":\"auto\",\"tools\":[{\"function\":{\"name\":"
		"\"f\",\"strict\":true,\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"not\":{}}}}}}]}",
		NULL, STATUS_UNSUPPORTED, "tools[0].parameters.properties.a: keyword \"not\"");
}

/* A mark within a string of the arguments would end the call for tool_calls_read. */
static bool is_mark(int32_t id)
{
	return id >= BED_FIRST && strstr(bed_tokens[id - BED_FIRST], "tool_call>");
}

/* Random texts of a grammar, token by token: the program reads each as calls. */
static void test_tools__every_text_parses(void **state)
{
	static const char *const formats[][2] = {{"chatml", "qwen2.5"}, {"llama", "llama3.1"}};
	struct grammar_vocab *v = bed_vocab();
	uint32_t mask[(BED_COUNT + 31) / 32];
	struct error err = {0};
	uint64_t random = 7;

	(void)state;
	for (int f = 0; f < 2; f++) {
		const struct template *t = NULL;
		struct text source = {0};
		struct grammar *g;

		text_addf(
			&source,
			"{\"type\":\"tool_calls\",\"format\":\"%s\",\"mode\":\"required\",\"parallel\":true," TOOLS
			"}",
			formats[f][0]);
		g = bed_compile(v, text_str(&source));
		assert_int_equal(template_find(&t, formats[f][1], "chat_template", NULL, &err), STATUS_OK);
		for (int round = 0; round < 100; round++) {
			struct grammar_state *s = bed_state(g);
			struct tool_calls calls;
			struct text text = {0};

			for (int token = 0; token < 400 && !grammar_is_complete(s); token++) {
				int32_t id, tries = 0;

				assert_int_equal(grammar_mask(s, mask, &err), STATUS_OK);
				do {
					random = random * 6364136223846793005u + 1442695040888963407u;
					id = tries++ < 5000 ? (int32_t)((random >> 33) % BED_COUNT)
							    : tries % BED_COUNT;
				} while (!(mask[id / 32] >> id % 32 & 1) || is_mark(id));
				assert_int_equal(grammar_accept(s, id), GRAMMAR_ACCEPTED);
				text_add_bytes(&text,
					       id < 256 ? &(char){(char)id} : bed_tokens[id - BED_FIRST],
					       id < 256 ? 1 : strlen(bed_tokens[id - BED_FIRST]));
			}
			if (grammar_is_complete(s)) {
				assert_int_equal(tool_calls_read(&calls, t, text_str(&text), &err),
						 STATUS_OK);
				if (calls.broken || !calls.count || calls.content.size)
					fail_msg("%s", text_str(&text));
				tool_calls_release(&calls);
			}
			text_release(&text);
			grammar_state_destroy(&s);
		}
		grammar_release(&g);
		text_release(&source);
	}
	grammar_vocab_destroy(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_regex__constructs),
		cmocka_unit_test(test_regex__refusals),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_gbnf),
		cmocka_unit_test(test_gbnf__refusals),
		cmocka_unit_test(test_tools__chatml),
		cmocka_unit_test(test_thought__may_be_left_out_unless_the_prompt_opened_it),
		cmocka_unit_test(test_tools__llama_and_mistral),
		cmocka_unit_test(test_tools__an_answer_may_have_a_schema),
		cmocka_unit_test(test_tools__refusals),
		cmocka_unit_test(test_tools__every_text_parses),
	};

	return cmocka_run_group_tests_name("grammar_text", tests, NULL, NULL);
}
