/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text/redact.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

enum how { WHOLE, END, WITHIN };
enum { NAME_MAX_BYTES = 128, NAME_PART = NAME_MAX_BYTES / 2, SHAPE_MIN = 12, SHAPE_DIGITS = 2 };

/* Names in lower case; "_" replaces "-" and ".", and separates the words of camelCase. */
static const struct {
	const char *text;
	enum how how;
} names[] = {
	{"secret", WITHIN},
	{"password", WITHIN},
	{"passwd", WITHIN},
	{"passphrase", WITHIN},
	{"credential", WITHIN},
	{"pass", WHOLE},
	{"_pass", END},
	{"pwd", WHOLE},
	{"_pwd", END},
	{"pw", WHOLE},
	{"token", END},
	{"key", WHOLE},
	{"apikey", END},
	{"_key", END},
	{"accesskey", END},
	{"privatekey", END},
	{"sshkey", END},
	{"auth", WHOLE},
	{"_auth", END},
	{"bearer", WHOLE},
	{"authorization", END},
	{"cookie", WHOLE},
	{"_cookie", END},
	{"pat", WHOLE},
	{"_pat", END},
	{"x_amz_signature", WHOLE},
	{"sig", WHOLE},
	{"signature", WHOLE},
	{"dsn", WHOLE},
	{"_dsn", END},
	{"connection_string", END},
};
/* Prefixes of the tokens of well-known services. */
static const char *const shapes[] = {"hf_",   "ghp_",  "gho_",	"ghs_",	 "ghu_", "github_pat_", "glpat-",
				     "sk-",   "xoxb-", "xoxp-", "AKIA",	 "ASIA", "eyJ",		"wandb_v1_",
				     "ya29.", "AIza",  "npm_",	"pypi-", NULL};
/* Options whose value is user:password. */
static const char *const accounts[] = {"u", "user", "proxy_user", NULL};
/* Programs whose option -p is followed directly by the password. `apart`: the password may also be the
 * next word. */
static const struct {
	const char *name;
	bool apart;
} glued[] = {{"mysql", false},	   {"mysqldump", false}, {"mysqladmin", false}, {"mysqlimport", false},
	     {"mysqlshow", false}, {"mariadb", false},	 {"sshpass", true}};

struct sink {
	char *out;
	size_t room, size;
};

static void put(struct sink *k, const char *s, size_t size)
{
	for (size_t i = 0; i < size; i++, k->size++)
		if (k->size + 1 < k->room)
			k->out[k->size] = s[i];
}

static void put_redacted(struct sink *k)
{
	put(k, REDACTED, strlen(REDACTED));
}

/* Converts a name to the form of the table. `size` is at most NAME_PART. */
static void settle(char out[NAME_MAX_BYTES + 1], const char *name, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)name[i];

		if (i && isupper(c) && islower((unsigned char)name[i - 1]))
			out[n++] = '_';
		out[n++] = c == '-' || c == '.' ? '_' : (char)tolower(c);
	}
	out[n] = '\0';
}

/* Converts only the last NAME_PART bytes of a name: the rules for whole names and for endings need no
 * more. */
static void settle_end(char out[NAME_MAX_BYTES + 1], const char *name, size_t size)
{
	size_t left_out = size > NAME_PART ? size - NAME_PART : 0;

	settle(out, name + left_out, size - left_out);
}

static bool matches(const char *name, const char *text, enum how how)
{
	size_t n = strlen(name), m = strlen(text);

	if (how == WHOLE)
		return !strcmp(name, text);
	if (how == END)
		return n >= m && !strcmp(name + n - m, text);
	return strstr(name, text) != NULL;
}

static bool any_matches(const char *settled, bool end)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((end || names[i].how == WITHIN) && matches(settled, names[i].text, names[i].how))
			return true;
	return false;
}

/* True if a value of this name is a secret. Searches a long name in parts. The parts overlap by half, so that
 * each word of the table is whole in one of them. */
static bool redact_name(const char *name, size_t size)
{
	char settled[NAME_MAX_BYTES + 1];

	for (size_t at = 0; at + NAME_PART < size; at += NAME_PART / 2) {
		settle(settled, name + at, NAME_PART);
		if (any_matches(settled, false))
			return true;
	}
	settle_end(settled, name, size);
	return any_matches(settled, true);
}

static bool is_account(const char *name, size_t size)
{
	char settled[NAME_MAX_BYTES + 1];

	settle_end(settled, name, size);
	for (const char *const *a = accounts; *a; a++)
		if (!strcmp(settled, *a))
			return true;
	return false;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'';
}

/* Length of a known token at `s`, or 0. */
static size_t shaped(const char *s)
{
	for (const char *const *p = shapes; *p; p++) {
		size_t n = strlen(*p), all = n, digits = 0;

		if (strncmp(s, *p, n))
			continue;
		for (; is_name(s[all]); all++)
			digits += isdigit((unsigned char)s[all]) != 0;
		if (all - n >= SHAPE_MIN &&
		    digits >= SHAPE_DIGITS) /* a word such as hf_transformers_cache has no digits */
			return all;
	}
	return 0;
}

/* Where a value ends. The value after an option's '=' is one word, whatever it contains. The value of a
 * header ends with the quotes around it. */
enum reach { TO_BLANK, TO_QUOTE, TO_END };

/* Length from the quote at `s` to its closing quote, both included; a backslash escapes a double quote. 0
 * if there is no closing quote. */
static size_t quoted_size(const char *s)
{
	size_t n = 1;

	while (s[n] && s[n] != *s)
		n += *s == '"' && s[n] == '\\' && s[n + 1] ? 2 : 1;
	return s[n] ? n + 1 : 0;
}

/* Length of a shell word, which may consist of bare and quoted parts. After a quoted beginning, a bracket
 * or a comma ends the word, as in {"password": "x", ..}. In a bare word they belong to it: removing too
 * much is better than too little. */
static size_t shell_word_size(const char *s)
{
	const char *ends = is_quote(*s) ? ";&|,)]}:" : ";&|";
	size_t n = 0, part;

	while (s[n] && !is_blank(s[n]) && !strchr(ends, s[n])) {
		if (!is_quote(s[n])) {
			n += s[n] == '\\' && s[n + 1] ? 2 : 1;
			continue;
		}
		part = quoted_size(s + n);
		if (!part) /* it closes quotes that began before the word */
			return n ? n : strlen(s);
		n += part;
	}
	return n;
}

static size_t value_size(const char *s, enum reach reach)
{
	if (reach == TO_END)
		return strlen(s);
	if (reach == TO_BLANK)
		return shell_word_size(s);
	return is_quote(*s) && quoted_size(s) ? quoted_size(s) : is_quote(*s) ? strlen(s) : strcspn(s, "\"'");
}

/* Writes the value at `s` redacted, but keeps its quotes. Returns the bytes consumed. */
static size_t put_value(struct sink *k, const char *s, enum reach reach)
{
	size_t n = value_size(s, reach);
	bool quoted = n && is_quote(*s) && reach != TO_END;

	if (!n || (quoted && n == 2 && s[1] == *s))
		put(k, s, n); /* an empty value needs no redaction */
	else if (quoted) {
		put(k, s, 1);
		put_redacted(k);
		if (n > 1 && s[n - 1] == *s)
			put(k, s, 1);
	} else {
		put_redacted(k);
	}
	return n;
}

/* Redacts the password of user:password. */
static size_t put_account(struct sink *k, const char *s)
{
	size_t n = value_size(s, TO_BLANK), user = strcspn(s, ":");

	if (user >= n) {
		put(k, s, n);
		return n;
	}
	put(k, s, user + 1);
	put_redacted(k);
	if (is_quote(*s) && n > 1 && s[n - 1] == *s)
		put(k, s, 1);
	return n;
}

/* Redacts "://user:password@". Returns the bytes consumed, 0 if `s` has another form. A user name without
 * a password stays: git@host. A password may contain '@', '/', '?' and '#', so it ends at the last '@'
 * before a blank or a quote: removing too much is better than too little. */
static size_t put_url(struct sink *k, const char *s)
{
	size_t n = 3, user = 0, at = 0;

	if (strncmp(s, "://", 3))
		return 0;
	for (; s[n] && !is_blank(s[n]) && !is_quote(s[n]); n++) {
		if (s[n] == ':' && !user)
			user = n;
		if (s[n] == '@')
			at = n;
	}
	if (!user || at < user)
		return 0;
	put(k, s, user + 1);
	put_redacted(k);
	return at;
}

/* Number of blanks from `s` on. */
static size_t blanks(const char *s)
{
	size_t n = 0;

	while (is_blank(s[n]))
		n++;
	return n;
}

/* True if the word after an option is another option and not a value. A single dash proves nothing,
 * because tokens may begin with it. */
static bool is_option(const char *s)
{
	return s[0] == '-' && s[1] == '-';
}

/* Notes whether the program at `s` (the word, or the last part of its path) takes its password after -p. */
static void note_program(struct redact *r, const char *s, size_t size, bool begins)
{
	if (s[size] && !is_blank(s[size]) && !is_quote(s[size]))
		return;
	if (!begins && !is_blank(s[-1]) && !is_quote(s[-1]) && !strchr("/;|&(`", s[-1]))
		return;
	for (size_t i = 0; i < sizeof(glued) / sizeof(glued[0]); i++)
		if (strlen(glued[i].name) == size && !strncmp(s, glued[i].name, size)) {
			r->glued = true;
			r->apart = glued[i].apart;
		}
}

/* Redacts -pSECRET of a program in the table. Returns the bytes consumed, or 0. */
static size_t put_glued(struct redact *r, struct sink *k, const char *s, bool begins)
{
	bool apart = r->apart;
	size_t lead;

	if (!r->glued || strncmp(s, "-p", 2) || (!begins && !is_blank(s[-1]) && !is_quote(s[-1])))
		return 0;
	lead = 2 + blanks(s + 2);
	if (lead > 2 && (!apart || !s[lead]))
		return 0;
	if (apart) /* the following words belong to the program that sshpass starts */
		r->glued = r->apart = false;
	put(k, s, lead);
	if (!s[lead])
		r->value = apart;
	return lead + put_value(k, s + lead, begins ? TO_END : TO_BLANK);
}

/* Redacts the value after a name that begins at `s` + `dashes` and is `size` bytes long. Returns the bytes
 * consumed after the name. */
static size_t put_behind(struct redact *r, struct sink *k, const char *s, size_t dashes, size_t size,
			 bool begins)
{
	const char *name = s + dashes, *behind = name + size;
	size_t n = is_quote(*behind) && !begins ? 1 : 0, lead;
	bool bearer = !dashes && size == 6 && !strncasecmp(name, "bearer", 6);
	bool secret = redact_name(name, size), account = dashes && is_account(name, size);

	if (!secret && !account)
		return 0;
	lead = n + blanks(behind + n);
	if (behind[lead] == '=' || (behind[lead] == ':' && secret && strncmp(behind + lead, "://", 3))) {
		bool header = behind[lead] == ':' && !n;

		lead++;
		lead += blanks(behind + lead);
		put(k, behind, lead);
		return lead + (account && !secret ? put_account(k, behind + lead)
						  : put_value(k, behind + lead,
							      begins   ? TO_END
							      : header ? TO_QUOTE
								       : TO_BLANK));
	}
	if (!dashes && !bearer)
		return 0;
	if (!*behind) {
		r->value = secret;
		r->account = account && !secret;
		return 0;
	}
	lead = blanks(behind);
	if (!lead || !behind[lead] || (!bearer && is_option(behind + lead)))
		return 0;
	put(k, behind, lead);
	return lead + (secret ? put_value(k, behind + lead, TO_BLANK) : put_account(k, behind + lead));
}

static void scan(struct redact *r, struct sink *k, const char *word)
{
	for (const char *s = word; *s;) {
		bool begins = s == word;
		size_t n, dashes = 0, size = 0;

		n = begins || !is_name(s[-1]) ? shaped(s) : 0;
		if (n) {
			put_redacted(k);
			s += n;
			continue;
		}
		n = put_glued(r, k, s, begins);
		if (n) {
			s += n;
			continue;
		}
		while (s[dashes] == '-' || s[dashes] == '+')
			dashes++;
		while (is_name(s[dashes + size]))
			size++;
		if (size) {
			if (!dashes)
				note_program(r, s, size, begins);
			put(k, s, dashes + size);
			s += dashes + size + put_behind(r, k, s, dashes, size, begins);
			continue;
		}
		n = put_url(k, s);
		if (!n)
			put(k, s, n = 1);
		s += n;
	}
}

static size_t finish(struct sink *k)
{
	if (k->room)
		k->out[k->size < k->room ? k->size : k->room - 1] = '\0';
	return k->size;
}

size_t redact_word(struct redact *r, char *out, size_t room, const char *word)
{
	struct sink k = {out, room, 0};
	const struct redact was = *r;

	*r = (struct redact){.glued = was.glued, .apart = was.apart};
	if (was.value && *word && !is_option(word))
		put_redacted(&k);
	else if (was.account && *word && *word != '-' && strchr(word, ':')) {
		put(&k, word, strcspn(word, ":") + 1);
		put_redacted(&k);
	} else
		scan(r, &k, word);
	return finish(&k);
}

size_t redact_variable(char *out, size_t room, const char *name, const char *value)
{
	struct redact r = {.value = *value && redact_name(name, strlen(name))};

	return redact_word(&r, out, room, value);
}
