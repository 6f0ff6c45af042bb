/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache file: "ASSAYTOK", version, rows, tokens (u64 each), begin[rows + 1], token[tokens], then the
 * SHA-256 of everything before it as 64 hex digits. It is written under a temporary name and renamed. A
 * damaged file is made again.
 */
#include <unistd.h>

#include "core/file/file.h"
#include "train/data/tokenised.h"

enum { CACHE_VERSION = 1, SUM_SIZE = 64 };
#define FILE_MOST ((size_t)1 << 40)
static const char magic[8] = "ASSAYTOK";

struct head {
	char magic[8];
	uint64_t version, rows, tokens;
};

enum status tokenised_cache_path(char *path, size_t size, const struct tokenised_ask *ask, const char *file,
				 struct error *err)
{
	char rows[65], tokenizer[65], sum[65];
	struct text all = {0};
	enum status st = file_make_dir(ask->cache_dir, err);

	if (!st)
		st = file_sha256_of(rows, file, err);
	if (!st)
		st = file_sha256_of(tokenizer, ask->tokenizer_path, err);
	if (st)
		return st;
	text_addf(&all, "%d %s %s %s %d %d", CACHE_VERSION, rows, tokenizer, template_name(ask->template),
		  (int)ask->format, ask->control);
	file_sha256(sum, text_str(&all), all.size);
	text_release(&all);
	sum[32] = '\0';
	if (snprintf(path, size, "%s/%s.tokens", ask->cache_dir, sum) >= (int)size)
		return error_set(err, STATUS_BAD_INPUT, "cache_dir: the path is too long");
	return STATUS_OK;
}

/* The checksum detects damage, but has no key: whoever can write the file can write its checksum too. So
 * every value is checked before it is used. */
static bool sound(const struct tokenised_set *set, uint64_t tokens, int32_t vocabulary)
{
	if (set->begin[0] != 0 || set->begin[set->rows] != tokens)
		return false;
	for (uint64_t i = 0; i < set->rows; i++)
		if (set->begin[i] > set->begin[i + 1])
			return false;
	for (uint64_t i = 0; i < tokens; i++) {
		int32_t id = set->token[i] & ~TOKENISED_TRAINED;

		if (id < 0 || id >= vocabulary)
			return false;
	}
	return true;
}

static bool parse(struct tokenised_set *set, const char *data, size_t size, int32_t vocabulary)
{
	struct head head;
	size_t begins, tokens;
	char sum[65];

	if (size < sizeof(head) + SUM_SIZE)
		return false;
	memcpy(&head, data, sizeof(head));
	if (memcmp(head.magic, magic, sizeof(magic)) != 0 || head.version != CACHE_VERSION ||
	    head.rows >= size / 8 || head.tokens > size / 4)
		return false;
	begins = (head.rows + 1) * sizeof(*set->begin);
	tokens = head.tokens * sizeof(*set->token);
	if (size != sizeof(head) + begins + tokens + SUM_SIZE)
		return false;
	file_sha256(sum, data, size - SUM_SIZE);
	if (memcmp(sum, data + size - SUM_SIZE, SUM_SIZE) != 0)
		return false;
	set->rows = head.rows;
	set->begin = malloc(begins);
	set->token = malloc(tokens + sizeof(*set->token));
	if (!set->begin || !set->token)
		return false;
	memcpy(set->begin, data + sizeof(head), begins);
	memcpy(set->token, data + sizeof(head) + begins, tokens);
	return sound(set, head.tokens, vocabulary);
}

bool tokenised_cache_parse(struct tokenised_set *set, const char *data, size_t size, int32_t vocabulary)
{
	bool good;

	*set = (struct tokenised_set){0};
	good = parse(set, data, size, vocabulary);
	if (!good) {
		free(set->begin);
		free(set->token);
		*set = (struct tokenised_set){0};
	}
	return good;
}

bool tokenised_cache_read(struct tokenised_set *set, const char *path, int32_t vocabulary,
			  const struct log *log)
{
	struct error why = {0};
	char *data;
	size_t size;
	bool good;

	if (access(path, F_OK))
		return false;
	if (file_read_private(&data, &size, path, FILE_MOST, &why)) {
		log_warn(log, LOG_TOPIC_RUN, "%s; the rows are tokenized again", why.text);
		return false;
	}
	good = tokenised_cache_parse(set, data, size, vocabulary);
	free(data);
	if (!good)
		log_warn(
			log, LOG_TOPIC_RUN,
			"%s: the cached tokens are damaged or from another tokenizer; the rows are tokenized again",
			path);
	return good;
}

enum status tokenised_cache_write(const struct tokenised_set *set, const char *path, struct error *err)
{
	struct head head = {.version = CACHE_VERSION, .rows = set->rows, .tokens = set->begin[set->rows]};
	struct text all = {0};
	char sum[65];
	enum status st;

	memcpy(head.magic, magic, sizeof(magic));
	text_add_bytes(&all, (const char *)&head, sizeof(head));
	text_add_bytes(&all, (const char *)set->begin, (set->rows + 1) * sizeof(*set->begin));
	text_add_bytes(&all, (const char *)set->token, head.tokens * sizeof(*set->token));
	file_sha256(sum, text_str(&all), all.size);
	text_add_bytes(&all, sum, SUM_SIZE);
	st = all.failed ? error_set(err, STATUS_NO_RESOURCE, "%s: %zu bytes", path, all.size)
			: file_write_private(path, all.data, all.size, err);
	text_release(&all);
	return st;
}
