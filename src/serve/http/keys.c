/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/keys.h"

#include <ctype.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <sys/stat.h>

#include "core/file/file.h"

enum { FILE_MOST = 1 << 20, KEYS_MOST = 4096, KEY_BYTES_MOST = 512 };

static void digest(uint8_t out[32], const char *key, size_t size)
{
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, size, (const uint8_t *)key);
	sha256_digest(&sha, SHA256_DIGEST_SIZE, out);
}

static enum status add_key(struct keys *k, const char *key, size_t size, const char *path, size_t line,
			   struct error *err)
{
	uint8_t(*grown)[32];

	for (; size && (*key == ' ' || *key == '\t'); key++)
		size--;
	while (size && (key[size - 1] == '\r' || key[size - 1] == ' ' || key[size - 1] == '\t'))
		size--;
	if (!size || *key == '#')
		return STATUS_OK;
	for (size_t i = 0; i < size; i++)
		if (iscntrl((unsigned char)key[i]))
			return error_set(err, STATUS_BAD_INPUT,
					 "%s:%zu: byte %zu of the key is the control character 0x%02x; save "
					 "the file as plain text (UTF-8)",
					 path, line, i + 1, (unsigned char)key[i]);
	if (size > KEY_BYTES_MOST || k->count == KEYS_MOST)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%zu: more than %d keys, or a key of over %d bytes", path, line,
				 KEYS_MOST, KEY_BYTES_MOST);
	grown = realloc(k->digests, (k->count + 1) * sizeof(*grown));
	if (!grown)
		return error_set(err, STATUS_NO_RESOURCE, "%zu keys", k->count + 1);
	k->digests = grown;
	digest(k->digests[k->count++], key, size);
	return STATUS_OK;
}

static enum status check_mode(const char *path, struct error *err)
{
	struct stat info;

	if (stat(path, &info))
		return error_set(err, STATUS_UNAVAILABLE,
				 "cannot read the keys in %s: it does not exist, or access is denied", path);
	if (info.st_mode & (S_IRWXO | S_IWGRP))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s can be used by other users (mode %03o); run chmod 600 on it", path,
				 (unsigned)info.st_mode & 0777);
	return STATUS_OK;
}

enum status keys_read(struct keys *k, const char *path, struct error *err)
{
	char *text = NULL;
	const char *at;
	size_t size, line = 1;
	static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8 */
	enum status st = check_mode(path, err);

	*k = (struct keys){0};
	if (!st)
		st = file_read(&text, &size, path, FILE_MOST, err);
	at = text;
	if (!st && !strncmp(text, mark, strlen(mark)))
		at += strlen(mark);
	for (; !st && at < text + size; line++) {
		const char *end = memchr(at, '\n', (size_t)(text + size - at));
		const size_t length = end ? (size_t)(end - at) : (size_t)(text + size - at);

		st = add_key(k, at, length, path, line, err);
		at += length + 1;
	}
	if (text)
		explicit_bzero(text, size);
	free(text);
	if (!st && !k->count)
		st = error_set(err, STATUS_BAD_INPUT, "%s has no key; write one per line", path);
	if (st)
		keys_release(k);
	return st;
}

bool keys_match(const struct keys *k, const char *key)
{
	uint8_t given[32];
	int match = 0;

	digest(given, key, strlen(key));
	for (size_t i = 0; i < k->count; i++) /* always all of them */
		match |= memeql_sec(given, k->digests[i], sizeof(given));
	return match;
}

void keys_release(struct keys *k)
{
	free(k->digests);
	*k = (struct keys){0};
}
