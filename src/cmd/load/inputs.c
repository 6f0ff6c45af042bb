/* SPDX-License-Identifier: Apache-2.0 */
/* Small files that the options of a load test name. */
#include "cmd/load/load.h"
#include "core/file/file.h"
#include "core/text/text.h"

enum { KEY_FILE_MOST = 64 << 10, AUTHORITIES_MOST = 16 << 20 };

/* The first line of the file. */
static enum status read_key(struct loading *l, struct error *err)
{
	char *text = NULL;
	size_t size;
	enum status st;

	if (!l->o->key_file)
		return STATUS_OK;
	st = file_read(&text, &size, l->o->key_file, KEY_FILE_MOST, err);
	if (!st) {
		text[strcspn(text, "\r\n")] = '\0';
		text_copy(l->key, sizeof(l->key), text);
		if (!*l->key || strlen(text) >= sizeof(l->key))
			st = error_set(err, STATUS_BAD_INPUT, "%s: its first line is no API key",
				       l->o->key_file);
	}
	free(text);
	return st;
}

/* A TLS library may take a file without certificates for an empty list. */
static enum status check_authorities(const struct load_opts *o, struct error *err)
{
	char *text = NULL;
	size_t size;
	enum status st;

	if (!o->authorities)
		return STATUS_OK;
	st = file_read(&text, &size, o->authorities, AUTHORITIES_MOST, err);
	if (!st && !strstr(text, "-----BEGIN "))
		st = error_set(
			err, STATUS_BAD_INPUT,
			"--ca-file %.200s: it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)",
			o->authorities);
	else if (st)
		st = err->status = STATUS_BAD_INPUT;
	free(text);
	return st;
}

enum status load_inputs_read(struct loading *l, struct error *err)
{
	const enum status st = read_key(l, err);

	return st ? st : check_authorities(l->o, err);
}
