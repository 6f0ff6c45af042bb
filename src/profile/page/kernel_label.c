/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a label in two passes. The first pass copies a C++ name without return type, namespaces and
 * parameters: it keeps the last part of each qualified name, at any depth of template arguments. The second
 * pass cuts the copy at the end of an argument. */
#include "profile/page/kernel_label.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/utf8.h"

/* MIDDLE_TAIL: one part in five of what remains of a name cut in the middle is its end. WORD_LONG: bytes from
 * which on a word is long. FILL_LEAST: smallest number of characters of a long word that is worth showing. */
enum { DEPTH = 64, NONE = -1, MIDDLE_TAIL = 5, FILL_LEAST = 12, WORD_LONG = 20 };
static const char ellipsis[] = "…";

/* Class templates that wrap the functor of a kernel. Their last argument is shown in their place. */
static const struct {
	const char *space, *name;
} wrappers[] = {
	{"cutlass", "Kernel"},
	{"cutlass", "Kernel2"},
	{"cutlass", "device_kernel"},
	{"native", "gpu_kernel_impl"},
	{"native", "gpu_kernel_impl_nocast"},
	{"native", "func_wrapper_t"},
	{"native", "AUnaryFunctor"},
	{"native", "BUnaryFunctor"},
	{"native", "BinaryFunctor"},
};

/* State within one pair of brackets, or outside all brackets. Positions are offsets in the copy. */
struct level {
	char open;	   /* < ( { ; 0: outside all brackets */
	size_t bracket;	   /* position of the opening bracket */
	size_t argument;   /* begin of the current argument */
	size_t path;	   /* begin of the current qualified name */
	size_t named;	   /* end of its last named part, without parameters; lambdas have no name */
	long parameters;   /* position of the bracket that opens the parameters; NONE */
	bool nameless;	   /* the last part is a lambda or an operator */
	bool replaced;	   /* the last part is the argument of a wrapper */
	const char *space; /* the namespace before the last part, static; NULL: none that matters */
};

struct copy {
	struct text out;
	struct level level[DEPTH];
	size_t depth;	   /* index of the innermost level */
	size_t rounds;	   /* number of ( levels */
	size_t symbol_end; /* end of an operator's symbol, after which template arguments may follow; 0: none
			    */
	bool apart;	   /* a blank, a star or a similar character was outside all brackets */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '~' || c == '\'' || c == '.' ||
	       (unsigned char)c >= 0x80;
}

/* Whether the byte begins a UTF-8 character. */
static bool is_first_byte(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static struct level *top(struct copy *c)
{
	return &c->level[c->depth];
}

static void truncate_to(struct copy *c, size_t size)
{
	if (c->out.failed || size >= c->out.size)
		return;
	c->out.size = size;
	c->out.data[size] = '\0';
}

static char last(const struct copy *c)
{
	return c->out.size ? c->out.data[c->out.size - 1] : '\0';
}

static void begin_path(struct level *l, size_t at)
{
	l->path = at;
	l->parameters = NONE;
	l->nameless = l->replaced = false;
	l->space = NULL;
}

/* Adds a byte that is not part of a name. The next qualified name begins after it. */
static void add_between(struct copy *c, char byte)
{
	struct level *l = top(c);
	bool leads = byte == ',' || (byte == ' ' && l->argument == c->out.size);

	text_add_bytes(&c->out, &byte, 1);
	begin_path(l, c->out.size);
	if (leads)
		l->argument = c->out.size;
	c->apart |= !c->depth;
}

static bool open_bracket(struct copy *c, char byte)
{
	struct level *l = top(c);

	if (c->depth + 1 == DEPTH)
		return false;
	if (byte == '(' && l->parameters == NONE && c->out.size > l->path)
		l->parameters = (long)c->out.size;
	c->rounds += byte == '(';
	c->depth++;
	*top(c) = (struct level){.open = byte, .bracket = c->out.size};
	text_add_bytes(&c->out, &byte, 1);
	top(c)->argument = c->out.size;
	begin_path(top(c), c->out.size);
	return true;
}

/* Turns "gpu_kernel_impl<X>" into "X". */
static void replace_wrapper(struct copy *c, struct level *l, const struct level *inner)
{
	size_t size = inner->bracket - l->path;

	if (l->nameless || l->replaced || !l->space)
		return;
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
		if (strcmp(l->space, wrappers[i].space) || strlen(wrappers[i].name) != size ||
		    memcmp(c->out.data + l->path, wrappers[i].name, size))
			continue;
		size = c->out.size - inner->argument;
		memmove(c->out.data + l->path, c->out.data + inner->argument, size);
		truncate_to(c, l->path + size);
		l->replaced = true;
		return;
	}
}

static void close_bracket(struct copy *c, char byte)
{
	const struct level inner = *top(c);
	struct level *l = &c->level[--c->depth];

	c->rounds -= inner.open == '(';
	if (byte == '>' && !c->out.failed) {
		size_t before = c->out.size;

		replace_wrapper(c, l, &inner);
		if (c->out.size != before)
			return;
	}
	text_add_bytes(&c->out, &byte, 1);
	if (byte == '}' && l->replaced)
		truncate_to(c, l->named);
}

/* Closes a round bracket. In unbalanced text it also closes the brackets that are open within it. */
static void close_round(struct copy *c)
{
	if (!c->rounds) {
		add_between(c, ')');
		return;
	}
	while (top(c)->open != '(')
		c->depth--;
	close_bracket(c, ')');
}

/* Handles "::": drops the part before it, unless a lambda or an operator follows. */
static void leave_scope(struct copy *c, const char *next)
{
	struct level *l = top(c);
	size_t end = l->parameters == NONE ? c->out.size : (size_t)l->parameters;
	const char *space = NULL;

	if (c->out.failed)
		return;
	if (*next == '{' || *next == '\'' || begins(next, "operator")) {
		if (!l->nameless)
			l->named = end;
		truncate_to(c, l->named);
		text_add(&c->out, l->named > l->path ? "::" : "");
		l->nameless = true;
		l->parameters = NONE;
		return;
	}
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		if (strlen(wrappers[i].space) == end - l->path &&
		    !memcmp(c->out.data + l->path, wrappers[i].space, end - l->path))
			space = wrappers[i].space;
	truncate_to(c, l->path);
	begin_path(l, l->path);
	/* Only the namespace directly before a name can make it a wrapper. */
	l->space = space;
}

/* Copies "operator" with its symbol, or with the blank before a type. Returns the number of bytes taken; 0:
 * not an operator. */
static size_t add_operator(struct copy *c, const char *s)
{
	static const char *const symbols[] = {
		"()", "[]", "->*", "->", "<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "==", "!=", "&&",
		"||", "++", "--",  "+=", "-=",	"*=",  "/=",  "%=", "&=", "|=", "^=", "<",  ">",  "+",
		"-",  "*",  "/",   "%",	 "&",	"|",   "^",   "!",  "~",  "=",	",",  " "};
	const size_t word = sizeof("operator") - 1;

	if (!begins(s, "operator"))
		return 0;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		size_t size = word + strlen(symbols[i]);

		if (!begins(s + word, symbols[i]))
			continue;
		text_add_bytes(&c->out, s, size);
		c->symbol_end = c->out.size;
		return size + begins(s + size, " <"); /* "operator< <int>" */
	}
	return 0;
}

/* Length of "(anonymous namespace)" or a similar text, whose brackets belong to the name; 0: something else.
 */
static size_t nameless_space(const char *s)
{
	static const char *const names[] = {"(anonymous namespace)", "<unnamed>", "(anonymous)"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (begins(s, names[i]) && begins(s + strlen(names[i]), "::"))
			return strlen(names[i]);
	return 0;
}

/* Whether a < opens template arguments. After a number or a bracket it is a comparison. */
static bool opens_template(const struct copy *c)
{
	const struct level *l = &c->level[c->depth];

	if (c->out.failed || c->out.size == l->path)
		return false;
	if (c->symbol_end == c->out.size)
		return true;
	return is_word(last(c)) && !isdigit((unsigned char)c->out.data[l->path]);
}

/* Returns the number of bytes taken. "> >" becomes ">>"; the const of a member function is dropped. */
static size_t add_blank(struct copy *c, const char *s)
{
	if (begins(s, " const") && last(c) == ')' && (!s[6] || begins(s + 6, "::")))
		return 6;
	if (s[1] == '>' && last(c) == '>')
		return 1;
	add_between(c, ' ');
	return 1;
}

/* Copies one byte or more. Returns the number of bytes taken; 0: the brackets are nested too deeply. */
static size_t copy_some(struct copy *c, const char *s)
{
	bool word_before = is_word(last(c)) && c->out.size > top(c)->path;
	size_t taken = nameless_space(s);

	if (begins(s, "::")) {
		leave_scope(c, s + 2);
		return 2;
	}
	if (!taken && !word_before)
		taken = add_operator(c, s);
	else if (taken)
		text_add_bytes(&c->out, s, taken);
	if (taken)
		return taken;
	if (*s == ' ')
		return add_blank(c, s);
	if (*s == '(' || *s == '{' || (*s == '<' && opens_template(c)))
		return open_bracket(c, *s);
	if (*s == ')')
		close_round(c);
	else if ((*s == '>' && top(c)->open == '<' && last(c) != '-') || (*s == '}' && top(c)->open == '{'))
		close_bracket(c, *s);
	else if (is_word(*s))
		text_add_bytes(&c->out, s, 1);
	else
		add_between(c, *s);
	return 1;
}

/* Length of a name without a trailing return type and without the suffixes that compilers append to clones.
 */
static size_t signature_size(const char *name)
{
	const char *clone = strstr(name, " [clone "), *result = strstr(name, ") -> ");
	size_t size = clone ? (size_t)(clone - name) : strlen(name);

	return result && (size_t)(result - name) < size ? (size_t)(result - name) + 1 : size;
}

/* Copies the name and template arguments of the function, beginning at level[0].path. Returns false if the
 * name cannot be parsed as a function. */
static bool copy_function(struct copy *c, const char *name)
{
	size_t size = signature_size(name), taken;
	const struct level *l = &c->level[0];

	begin_path(top(c), 0);
	for (size_t at = 0; at < size; at += taken) {
		taken = copy_some(c, name + at);
		if (!taken || c->out.failed)
			return false;
	}
	/* A name with a return type must have parameters. */
	if (c->depth || (c->apart && l->parameters == NONE))
		return false;
	if (l->parameters != NONE)
		truncate_to(c, (size_t)l->parameters);
	return c->out.size > l->path;
}

/* Turns "_ZN2at6native4copyILi4E.." into "copy<…>". For machines without libstdc++, which otherwise demangles
 * names. */
static bool mangled_function(struct text *out, const char *name)
{
	const char *s = name + 2, *found = NULL, *behind = name + strlen(name);
	size_t size = 0;

	if (!begins(name, "_Z"))
		return false;
	if (*s == 'L')
		s++;
	if (*s == 'N')
		s++;
	while (*s == 'K' || *s == 'L')
		s++;
	while (isdigit((unsigned char)*s)) {
		char *end;
		unsigned long n = strtoul(s, &end, 10);

		if (!n || n > (size_t)(behind - end) || !is_first_byte(end[n]))
			break;
		found = end;
		size = n;
		s = end + n;
	}
	if (!found)
		return false;
	text_add_bytes(out, found, size);
	text_add(out, *s == 'I' ? "<…>" : "");
	return true;
}

/* Offset of the n-th character; the length of the text if it has fewer. */
static size_t character_at(const char *s, size_t n)
{
	size_t at = 0;

	for (; s[at]; at++)
		if (is_first_byte(s[at]) && !n--)
			break;
	return at;
}

static size_t characters(const char *s, size_t size)
{
	size_t n = 0;

	for (size_t at = 0; at < size; at++)
		n += is_first_byte(s[at]);
	return n;
}

/* Cuts out the middle of a long text. The end is kept because it often tells names apart: triton_.._17. */
static void add_middle_cut(struct text *out, const char *s, size_t size, size_t width)
{
	size_t tail = (width - 1) / MIDDLE_TAIL, head = width - 1 - tail, from = size;

	if (characters(s, size) <= width) {
		text_add_bytes(out, s, size);
		return;
	}
	text_add_bytes(out, s, character_at(s, head));
	text_add(out, ellipsis);
	while (from && tail)
		tail -= is_first_byte(s[--from]);
	text_add_bytes(out, s + from, size - from);
}

/* A possible end of a label: the number of bytes, and the brackets open there. */
struct end {
	size_t size, used, open; /* used: characters */
	char close[DEPTH];
};

static char closing(char open)
{
	return open == '<' ? '>' : open == '(' ? ')' : '}';
}

/* Takes s[at] into account. Returns true if a label may end after it. */
static bool step(struct end *e, const char *s, size_t at)
{
	char before = at ? s[at - 1] : '\0';
	bool opens = s[at] == '(' || s[at] == '{' || (s[at] == '<' && is_word(before));

	if (opens && e->open < DEPTH)
		e->close[e->open++] = closing(s[at]);
	else if (e->open && s[at] == e->close[e->open - 1] && before != '-')
		e->open--;
	return (opens && s[at] == '<') || (before == ',' && s[at] == ' ' && e->open) ||
	       (before == ':' && s[at] == ':');
}

/* The furthest possible end of a label of that width; size 0: none. */
static struct end find_end(const char *s, size_t width)
{
	struct end now = {0}, best = {0};

	for (size_t at = 0; s[at] && now.used < width; at++) {
		bool may = step(&now, s, at);

		now.used += is_first_byte(s[at]);
		if (may && now.used + 1 + now.open <= width) {
			best = now;
			best.size = at + 1;
		}
	}
	return best;
}

/* Number of bytes of the next identifier to add if much room is left: the begin of a long one. */
static size_t fill(const char *s, const struct end *e, size_t width)
{
	size_t room = width - e->used - 1 - e->open, n = 0;

	while (room >= FILL_LEAST && is_word(s[e->size + n]))
		n++;
	if (n < WORD_LONG)
		return 0;
	return characters(s + e->size, n) > room ? character_at(s + e->size, room) : n;
}

static void cut(struct text *out, const char *s, size_t width)
{
	size_t size = strlen(s), name = strcspn(s, "<");
	struct end e = find_end(s, width);

	if (characters(s, size) <= width) {
		text_add(out, s);
		return;
	}
	if (!e.size) {
		add_middle_cut(out, s, name, width);
		return;
	}
	text_add_bytes(out, s, e.size + fill(s, &e, width));
	text_add(out, ellipsis);
	while (e.open)
		text_add_bytes(out, &e.close[--e.open], 1);
}

void kernel_label(struct text *out, const char *name, size_t width)
{
	struct copy c = {0};
	struct text clean = {0}, mangled = {0};
	bool function;

	utf8_add_clean(&clean, name, UTF8_KEEP_NOTHING);
	function = copy_function(&c, text_str(&clean));
	if (mangled_function(&mangled, text_str(&clean)))
		cut(out, text_str(&mangled), width);
	else if (function)
		cut(out, text_str(&c.out) + c.level[0].path, width);
	else
		add_middle_cut(out, text_str(&clean), clean.size, width);
	out->failed |= clean.failed || mangled.failed || c.out.failed;
	text_release(&clean);
	text_release(&mangled);
	text_release(&c.out);
}

static bool is_taken(const struct kernel_labels *all, const char *label)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->label[i], label))
			return true;
	return false;
}

const char *kernel_labels_add(struct kernel_labels *all, const char *name, size_t width)
{
	struct text label = {0};
	char **more = realloc(all->label, (all->count + 1) * sizeof(*more));
	size_t size;

	if (!more)
		return NULL;
	all->label = more;
	kernel_label(&label, name, width);
	size = label.size;
	for (unsigned i = 2; !label.failed && is_taken(all, text_str(&label)); i++) {
		label.size = size;
		text_addf(&label, " #%u", i);
	}
	more[all->count] = label.failed ? NULL : strdup(text_str(&label));
	text_release(&label);
	return more[all->count] ? more[all->count++] : NULL;
}

void kernel_labels_release(struct kernel_labels *all)
{
	for (size_t i = 0; i < all->count; i++)
		free(all->label[i]);
	free(all->label);
	*all = (struct kernel_labels){0};
}
