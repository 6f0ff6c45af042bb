/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/parse/lexer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/utf8.h"
#include "text/jinja/value/unicode.h"

static const char *const texts[] = {
#define X(name, text) [TOKEN_##name] = text,
	TOKEN_LIST(X)
#undef X
};

enum { BRACKETS_MAX = JINJA_NESTING_MAX };

struct lexer {
	struct tokens *out;
	struct jinja_arena *arena;
	const char *name, *text; /* newlines are "\n" only; NUL-terminated */
	size_t size, at;
	size_t counted; /* line and column are those of this place */
	int line, column;
	bool line_starting; /* the text before `at` ends with a newline, or nothing came before it */
	char brackets[BRACKETS_MAX];
	int open;
	struct error *err;
};

const char *token_text(enum token_type type)
{
	return texts[type];
}

void tokens_release(struct tokens *t)
{
	free(t->items);
	*t = (struct tokens){0};
}

/* Line and column (in characters) of a place. */
static void place(struct lexer *l, size_t at, int *line, int *column)
{
	if (at < l->counted) {
		l->counted = 0;
		l->line = l->column = 1;
	}
	for (; l->counted < at; l->counted++) {
		if (l->text[l->counted] == '\n') {
			l->line++;
			l->column = 1;
		} else {
			l->column += (l->text[l->counted] & 0xc0) != 0x80;
		}
	}
	*line = l->line;
	*column = l->column;
}

static enum status fail(struct lexer *l, size_t at, const char *what)
{
	int line, column;

	place(l, at, &line, &column);
	return error_set(l->err, STATUS_BAD_INPUT, "%.200s:%d:%d: %s", l->name, line, column, what);
}

static enum status add(struct lexer *l, enum token_type type, size_t at, const char *bytes, size_t size)
{
	struct tokens *t = l->out;
	struct token *grown, *new;
	size_t room;

	if (t->count == t->room) {
		room = t->room ? t->room * 2 : 256;
		grown = realloc(t->items, room * sizeof(*grown));
		if (!grown)
			return error_set_cause(l->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "%.200s: no memory for %zu tokens", l->name, room);
		t->items = grown;
		t->room = room;
	}
	new = &t->items[t->count++];
	*new = (struct token){.type = type, .bytes = bytes, .size = size};
	place(l, at, &new->line, &new->column);
	return STATUS_OK;
}

static size_t skip_space(const struct lexer *l, size_t at)
{
	size_t taken;

	while (at < l->size && unicode_is_space(utf8_decode(l->text + at, &taken)))
		at += taken;
	return at;
}

/* The end of text[begin .. end) without white space at its end. */
static size_t strip_right(const struct lexer *l, size_t begin, size_t end)
{
	size_t last = begin, taken;

	for (size_t at = begin; at < end; at += taken)
		if (!unicode_is_space(utf8_decode(l->text + at, &taken)))
			last = at + taken;
	return last;
}

/* Adds the text before a tag. `-` strips all white space before it. Without a sign, a tag other than {{
 * removes the white space between it and the beginning of its line. */
static enum status add_text(struct lexer *l, size_t end, char sign, bool print)
{
	size_t begin = l->at, line = end;

	if (sign == '-') {
		end = strip_right(l, begin, end);
	} else if (sign != '+' && !print) {
		while (line > begin && l->text[line - 1] != '\n')
			line--;
		if ((line > begin || l->line_starting) && strip_right(l, line, end) == line)
			end = line;
	}
	return end > begin ? add(l, TOKEN_TEXT, begin, l->text + begin, end - begin) : STATUS_OK;
}

static bool is_sign(char c)
{
	return c == '-' || c == '+';
}

static bool starts(const struct lexer *l, size_t at, const char *word)
{
	return !strncmp(l->text + at, word, strlen(word));
}

/* Moves to `end`, and past what the end of a tag strips: all white space after `-`, a newline without a
 * sign. */
static void after_tag(struct lexer *l, size_t end, char sign)
{
	if (sign == '-')
		end = skip_space(l, end);
	else if (sign != '+' && end < l->size && l->text[end] == '\n')
		end++;
	l->at = end;
	l->line_starting = l->text[end - 1] == '\n';
}

static enum status comment(struct lexer *l, size_t begin, size_t inner)
{
	const char *close = strstr(l->text + inner, "#}");
	size_t end;

	if (!close)
		return fail(l, begin, "the comment {# has no end #}");
	end = (size_t)(close - l->text);
	after_tag(l, end + 2, end > inner && is_sign(l->text[end - 1]) ? l->text[end - 1] : 0);
	return STATUS_OK;
}

/* The place after `{% word %}` if that is at `at`, else 0. *sign: of its beginning, *last: of its end. */
static size_t word_tag(const struct lexer *l, size_t at, const char *word, char *sign, char *last)
{
	size_t to = at + 2;

	if (!starts(l, at, "{%"))
		return 0;
	*sign = is_sign(l->text[to]) ? l->text[to++] : 0;
	to = skip_space(l, to);
	if (!starts(l, to, word))
		return 0;
	to = skip_space(l, to + strlen(word));
	*last = is_sign(l->text[to]) && l->text[to + 1] == '%' ? l->text[to++] : 0;
	return starts(l, to, "%}") ? to + 2 : 0;
}

/* {% raw %}text{% endraw %}; `inner`: where the text begins. */
static enum status raw(struct lexer *l, size_t begin, size_t inner, char last)
{
	const char *tag;
	enum status st;
	char sign, end_sign;
	size_t after;

	l->at = last == '-' ? skip_space(l, inner) : inner;
	l->line_starting = l->text[l->at - 1] == '\n';
	for (tag = l->text + l->at; (tag = strstr(tag, "{%")); tag += 2) {
		after = word_tag(l, (size_t)(tag - l->text), "endraw", &sign, &end_sign);
		if (!after)
			continue;
		st = add_text(l, (size_t)(tag - l->text), sign, false);
		after_tag(l, after, end_sign);
		return st;
	}
	return fail(l, begin, "{% raw %} has no {% endraw %}");
}

/* Appends the character that an escape stands for; returns the bytes taken after the backslash, 0: invalid.
 */
static size_t unescape(const char *s, size_t left, struct text *out)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	const char *simple = *s ? strchr(from, *s) : NULL;
	size_t digits = *s == 'x' ? 2 : *s == 'u' ? 4 : *s == 'U' ? 8 : 0, used = 1;
	unsigned long code = 0;
	char utf8[4], hex[9] = "";

	if (*s == '\n')
		return 1;
	if (simple) {
		text_add_bytes(out, &to[simple - from], 1);
		return 1;
	}
	if (digits) {
		if (left < 1 + digits)
			return 0;
		memcpy(hex, s + 1, digits);
		if (strspn(hex, "0123456789abcdefABCDEF") != digits)
			return 0;
		code = strtoul(hex, NULL, 16);
		used = 1 + digits;
	} else if (*s >= '0' && *s <= '7') {
		for (used = 0; used < 3 && used < left && s[used] >= '0' && s[used] <= '7'; used++)
			code = code * 8 + (unsigned long)(s[used] - '0');
	} else {
		text_add(out, "\\"); /* an unknown escape stays */
		return *s == 'N' ? 0 : SIZE_MAX;
	}
	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	text_add_bytes(out, utf8, unicode_encode((uint32_t)code, utf8));
	return used;
}

static enum status string(struct lexer *l)
{
	size_t begin = l->at, at = begin + 1, used;
	struct text content = {0};
	enum status st;
	char *copy;

	for (; at < l->size && l->text[at] != l->text[begin]; at += used) {
		used = 1;
		if (l->text[at] != '\\') {
			text_add_bytes(&content, l->text + at, 1);
			continue;
		}
		if (++at == l->size)
			break;
		used = unescape(l->text + at, l->size - at, &content);
		if (!used) {
			text_release(&content);
			return fail(l, at - 1, "this escape of a character is not valid");
		}
		used = used == SIZE_MAX ? 0 : used;
	}
	if (at >= l->size) {
		text_release(&content);
		return fail(l, begin, "the string has no end");
	}
	copy = content.failed ? NULL : jinja_arena_take(l->arena, content.size + 1);
	if (!copy) {
		text_release(&content);
		return error_set_cause(l->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%.200s: no memory for a string", l->name);
	}
	memcpy(copy, text_str(&content), content.size);
	st = add(l, TOKEN_STRING, begin, copy, content.size);
	text_release(&content);
	l->at = at + 1;
	return st;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Copies digits of a base without their underscores, and returns how many bytes they take. */
static size_t digits(const char *s, const char *set, char *out, size_t room)
{
	size_t used = 0, kept = strlen(out);

	while (s[used] &&
	       (strchr(set, s[used]) || (s[used] == '_' && s[used + 1] && strchr(set, s[used + 1])))) {
		if (s[used] != '_' && kept + 1 < room)
			out[kept++] = s[used];
		used++;
	}
	out[kept] = 0;
	return used;
}

static void append(char *out, size_t room, char c)
{
	size_t size = strlen(out);

	if (size + 1 < room) {
		out[size] = c;
		out[size + 1] = 0;
	}
}

static enum status number(struct lexer *l)
{
	static const char ten[] = "0123456789";
	const char *s = l->text + l->at;
	bool after_dot = l->at && s[-1] == '.', real = false;
	char copy[320] = "", kind = s[0] == '0' ? (char)(s[1] | 0x20) : 0;
	size_t used, more;
	enum status st;

	if (kind == 'x' || kind == 'o' || kind == 'b') {
		used = 2 + digits(s + 2,
				  kind == 'x'	? "0123456789abcdefABCDEF"
				  : kind == 'o' ? "01234567"
						: "01",
				  copy, sizeof(copy));
	} else {
		kind = 'd';
		used = digits(s, ten, copy, sizeof(copy));
		if (!after_dot && s[used] == '.' && is_digit(s[used + 1])) {
			append(copy, sizeof(copy), '.');
			used += 1 + digits(s + used + 1, ten, copy, sizeof(copy));
			real = true;
		}
		more = (s[used] | 0x20) == 'e' ? 1 : 0;
		if (more && is_sign(s[used + 1]))
			more++;
		if (more && !after_dot && is_digit(s[used + more])) {
			append(copy, sizeof(copy), 'e');
			if (more == 2)
				append(copy, sizeof(copy), s[used + 1]);
			used += more + digits(s + used + more, ten, copy, sizeof(copy));
			real = true;
		}
	}
	st = add(l, real ? TOKEN_FLOAT : TOKEN_INTEGER, l->at, s, used);
	if (st)
		return st;
	errno = 0;
	if (real)
		l->out->items[l->out->count - 1].real = strtod(copy, NULL);
	else
		l->out->items[l->out->count - 1].integer = strtoll(copy, NULL,
								   kind == 'x'	 ? 16
								   : kind == 'o' ? 8
								   : kind == 'b' ? 2
										 : 10);
	if (strlen(copy) + 2 >= sizeof(copy) || (!real && errno == ERANGE))
		return fail(l, l->at, "this number does not fit into 64 bits");
	l->at += used;
	return STATUS_OK;
}

static bool is_name(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && is_digit(c));
}

static enum status symbol(struct lexer *l)
{
	static const char open[] = "([{", close[] = ")]}";
	const char *s = l->text + l->at, *bracket;
	char shown[64];
	enum status st;

	for (int type = TOKEN_FLOOR; type < TOKEN_TYPES; type++) {
		if (!starts(l, l->at, texts[type]))
			continue;
		bracket = strchr(open, *s);
		if (bracket && l->open == BRACKETS_MAX)
			return fail(l, l->at, "brackets are nested too deeply");
		if (bracket)
			l->brackets[l->open++] = close[bracket - open];
		if (strchr(close, *s) && (!l->open || l->brackets[--l->open] != *s)) {
			snprintf(shown, sizeof(shown), "unexpected \"%c\"; no bracket is open for it", *s);
			return fail(l, l->at, shown);
		}
		st = add(l, (enum token_type)type, l->at, s, strlen(texts[type]));
		l->at += strlen(texts[type]);
		return st;
	}
	return fail(l, l->at,
		    (unsigned char)*s >= 0x80 ? "names outside ASCII are not supported"
					      : "this character has no meaning here");
}

/* If the tag ends here, adds its end. */
static bool tag_ends(struct lexer *l, bool print, enum status *st)
{
	const char *s = l->text + l->at, *close = print ? "}}" : "%}";
	char sign = *s == '-' || (*s == '+' && !print) ? *s : 0;
	size_t begin = l->at;

	if (l->open || strncmp(s + !!sign, close, 2) != 0)
		return false;
	*st = add(l, print ? TOKEN_PRINT_END : TOKEN_BLOCK_END, begin, s, 2);
	after_tag(l, begin + !!sign + 2, print && !sign ? '+' : sign);
	return true;
}

/* The tokens of a tag up to its end. */
static enum status tag(struct lexer *l, size_t begin, bool print)
{
	enum status st = STATUS_OK;
	size_t end;

	while (!st) {
		l->at = skip_space(l, l->at);
		if (l->at == l->size)
			return fail(l, begin, print ? "{{ has no end }}" : "{% has no end %}");
		if (tag_ends(l, print, &st))
			return st;
		if (is_name(l->text[l->at], true)) {
			for (end = l->at; is_name(l->text[end], false);)
				end++;
			st = add(l, TOKEN_NAME, l->at, l->text + l->at, end - l->at);
			l->at = end;
		} else if (is_digit(l->text[l->at])) {
			st = number(l);
		} else if (l->text[l->at] == '"' || l->text[l->at] == '\'') {
			st = string(l);
		} else {
			st = symbol(l);
		}
	}
	return st;
}

/* The next place of {{, {% or {#, or the text's end. */
static size_t next_tag(const struct lexer *l)
{
	const char *s = l->text + l->at;

	while ((s = strchr(s, '{')) && !(s[1] == '{' || s[1] == '%' || s[1] == '#'))
		s++;
	return s ? (size_t)(s - l->text) : l->size;
}

static enum status next(struct lexer *l)
{
	size_t begin = next_tag(l), inner = begin + 2, after;
	char sign, last, kind = begin < l->size ? l->text[begin + 1] : 0;
	enum status st;

	if (!kind) {
		st = add(l, TOKEN_TEXT, l->at, l->text + l->at, l->size - l->at);
		l->at = l->size;
		return st;
	}
	after = word_tag(l, begin, "raw", &sign, &last);
	if (!after) {
		sign = is_sign(l->text[inner]) ? l->text[inner] : 0;
		inner += !!sign;
	}
	st = add_text(l, begin, sign, kind == '{');
	l->line_starting = false;
	if (st)
		return st;
	if (after)
		return raw(l, begin, after, last);
	if (kind == '#')
		return comment(l, begin, inner);
	st = add(l, kind == '{' ? TOKEN_PRINT_BEGIN : TOKEN_BLOCK_BEGIN, begin, l->text + begin, 2);
	l->at = inner;
	return st ? st : tag(l, begin, kind == '{');
}

/* Copies the template with "\n" for each newline, without the last one. */
static char *copy_lines(struct jinja_arena *arena, const char *source, size_t size, size_t *out_size)
{
	char *copy = jinja_arena_take(arena, size + 4); /* four NULs at its end */
	size_t kept = 0;

	for (size_t i = 0; copy && i < size; i++) {
		bool pair = source[i] == '\r' && i + 1 < size && source[i + 1] == '\n';

		copy[kept++] = (char)(source[i] == '\r' ? '\n' : source[i]);
		i += pair;
	}
	if (copy && kept && copy[kept - 1] == '\n')
		copy[--kept] = 0;
	*out_size = kept;
	return copy;
}

enum status tokens_read(struct tokens *out, struct jinja_arena *arena, const char *name, const char *source,
			size_t size, struct error *err)
{
	struct lexer l = {.out = out,
			  .arena = arena,
			  .name = name,
			  .line = 1,
			  .column = 1,
			  .line_starting = true,
			  .err = err};
	enum status st = STATUS_OK;

	l.text = copy_lines(arena, source, size, &l.size);
	if (!l.text)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%.200s: no memory for %zu bytes", name, size);
	while (!st && l.at < l.size)
		st = next(&l);
	return st ? st : add(&l, TOKEN_END, l.size, l.text + l.size, 0);
}
