/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces pretoken.c and nfc.c in a build without PCRE2 or utf8proc. */
#include "text/tokenizer/nfc.h"
#include "text/tokenizer/pretoken.h"

const char pretoken_gpt2[] = "", pretoken_digits[] = "", pretoken_digit[] = "";

static enum status refuse(struct error *err)
{
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
			       "this assay was built without tokenizers, which need PCRE2 and utf8proc");
}

enum status pretoken_add(struct pretoken *p, const char *pattern, struct error *err)
{
	(void)p, (void)pattern;
	return refuse(err);
}

void pretoken_release(struct pretoken *p)
{
	(void)p;
}

enum status pretoken_match_create(struct pretoken_match **m, struct error *err)
{
	(void)m;
	return refuse(err);
}

void pretoken_match_destroy(struct pretoken_match **m)
{
	(void)m;
}

enum status pretoken_split(const struct pretoken *p, struct pretoken_match *m, const char *text, size_t size,
			   pretoken_word *word, void *arg, struct error *err)
{
	(void)p, (void)m, (void)text, (void)size, (void)word, (void)arg;
	return refuse(err);
}

enum status nfc_create(struct nfc **out, struct error *err)
{
	(void)out;
	return refuse(err);
}

void nfc_destroy(struct nfc **n)
{
	(void)n;
}

enum status nfc_apply(const struct nfc *n, const char *text, size_t size, struct text *scratch,
		      const char **out, size_t *out_size, struct error *err)
{
	(void)n, (void)text, (void)size, (void)scratch, (void)out, (void)out_size;
	return refuse(err);
}
