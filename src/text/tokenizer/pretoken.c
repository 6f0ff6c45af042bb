/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/pretoken.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/text/text.h"

/* clang-format off */
const char pretoken_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char pretoken_digits[] = "\\p{N}+";
const char pretoken_digit[] = "\\p{N}";
/* PCRE2's \s includes U+180E, which is no longer White_Space, so \s is replaced by an explicit list. */
#define WHITE_SPACE "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
/* clang-format on */

enum {
	PATTERN_MAX = 65536,
	JIT_STACK_FIRST = 32 << 10,
	JIT_STACK_MOST = 8 << 20,
	MATCH_LIMIT = 100000000, /* for matching without JIT; far more than the longest text needs */
};

struct pretoken_step {
	pcre2_code *code;
	bool jit;
};

struct pretoken_match {
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
};

/* Copies the expression with \s and \S replaced. */
static enum status write_out(struct text *out, const char *pattern, struct error *err)
{
	bool in_class = false;
	const char *s;

	for (s = pattern; *s; s++) {
		if (*s == '\\' && s[1]) {
			s++;
			if (*s == 's')
				text_addf(out, in_class ? "%s" : "[%s]", WHITE_SPACE);
			else if (*s == 'S' && in_class)
				return error_set(err, STATUS_UNSUPPORTED, "\\S within [] in \"%s\"", pattern);
			else if (*s == 'S')
				text_addf(out, "[^%s]", WHITE_SPACE);
			else
				text_addf(out, "\\%c", *s);
			continue;
		}
		if (*s == '[' && !in_class)
			in_class = true;
		else if (*s == ']')
			in_class = false;
		text_add_bytes(out, s, 1);
	}
	return out->failed ? error_set(err, STATUS_NO_RESOURCE, "an expression") : STATUS_OK;
}

static enum status compile(struct pretoken_step *step, const char *pattern, struct error *err)
{
	struct text written = {0};
	PCRE2_SIZE at;
	PCRE2_UCHAR why[128];
	int code;
	enum status st = write_out(&written, pattern, err);

	if (st)
		goto out;
	step->code = pcre2_compile((PCRE2_SPTR)text_str(&written), written.size,
				   PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE, &code, &at, NULL);
	if (!step->code) {
		pcre2_get_error_message(code, why, sizeof(why));
		st = error_set(err, STATUS_BAD_INPUT, "the expression \"%.200s\" does not compile: %s",
			       pattern, (const char *)why);
		goto out;
	}
	step->jit = !pcre2_jit_compile(step->code, PCRE2_JIT_COMPLETE); /* without JIT matching is slower */
out:
	text_release(&written);
	return st;
}

enum status pretoken_add(struct pretoken *p, const char *pattern, struct error *err)
{
	struct pretoken_step *step;
	enum status st;

	if (p->count == PRETOKEN_STEPS_MAX || strlen(pattern) > PATTERN_MAX)
		return error_set(err, STATUS_UNSUPPORTED,
				 "more than %d pre-tokenizers, or an expression longer than %d",
				 PRETOKEN_STEPS_MAX, PATTERN_MAX);
	step = calloc(1, sizeof(*step));
	if (!step)
		return error_set(err, STATUS_NO_RESOURCE, "a pre-tokenizer");
	st = compile(step, pattern, err);
	if (st) {
		free(step);
		return st;
	}
	p->steps[p->count++] = step;
	return STATUS_OK;
}

void pretoken_release(struct pretoken *p)
{
	while (p->count) {
		pcre2_code_free(p->steps[--p->count]->code);
		free(p->steps[p->count]);
	}
}

enum status pretoken_match_create(struct pretoken_match **m, struct error *err)
{
	struct pretoken_match *made = calloc(1, sizeof(*made));

	if (made) {
		made->data = pcre2_match_data_create(1, NULL);
		made->context = pcre2_match_context_create(NULL);
		made->stack = pcre2_jit_stack_create(JIT_STACK_FIRST, JIT_STACK_MOST, NULL);
	}
	if (!made || !made->data || !made->context || !made->stack) {
		pretoken_match_destroy(&made);
		return error_set(err, STATUS_NO_RESOURCE, "the workspace of a pre-tokenizer");
	}
	pcre2_jit_stack_assign(made->context, NULL, made->stack);
	pcre2_set_match_limit(made->context, MATCH_LIMIT);
	*m = made;
	return STATUS_OK;
}

void pretoken_match_destroy(struct pretoken_match **m)
{
	if (!*m)
		return;
	pcre2_match_data_free((*m)->data);
	pcre2_match_context_free((*m)->context);
	pcre2_jit_stack_free((*m)->stack);
	free(*m);
	*m = NULL;
}

struct splitting {
	const struct pretoken *p;
	struct pretoken_match *m;
	pretoken_word *word;
	void *arg;
};

/* The next match; returns pcre2_match's result. */
static int next_match(const struct pretoken_step *step, struct pretoken_match *m, const char *text,
		      size_t size, size_t from)
{
	if (step->jit)
		return pcre2_jit_match(step->code, (PCRE2_SPTR)text, size, from, PCRE2_NOTEMPTY, m->data,
				       m->context);
	return pcre2_match(step->code, (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
			   m->data, m->context);
}

/* Splits a piece by step `at` and the following steps; after the last step a piece is a word. */
static enum status split(const struct splitting *s, size_t at, const char *text, size_t size,
			 struct error *err)
{
	size_t done = 0;
	enum status st;

	if (at == s->p->count)
		return s->word(s->arg, text, size, err);
	while (done < size) {
		size_t begin = size, end = size;
		int found = next_match(s->p->steps[at], s->m, text, size, done);

		if (found >= 0) {
			const PCRE2_SIZE *place = pcre2_get_ovector_pointer(s->m->data);

			begin = place[0];
			end = place[1];
		}
		if ((found < 0 && found != PCRE2_ERROR_NOMATCH) || begin < done || end < begin) {
			return error_set(err, STATUS_BAD_INPUT,
					 "the pre-tokenizer gave up at byte %zu of %zu (PCRE2 error %d)",
					 done, size, found);
		}
		if (begin > done) {
			st = split(s, at + 1, text + done, begin - done, err);
			if (st)
				return st;
		}
		if (end > begin) {
			st = split(s, at + 1, text + begin, end - begin, err);
			if (st)
				return st;
		}
		done = end;
	}
	return STATUS_OK;
}

enum status pretoken_split(const struct pretoken *p, struct pretoken_match *m, const char *text, size_t size,
			   pretoken_word *word, void *arg, struct error *err)
{
	const struct splitting s = {.p = p, .m = m, .word = word, .arg = arg};

	return size ? split(&s, 0, text, size, err) : STATUS_OK;
}
