/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block files: a header of 40 bytes, followed by the rows; all numbers have 32 bits, least significant byte
 * first. See docs/explanation/design/attention.md, "Block files". The file comes from outside, so every
 * number is checked before use.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/file/file.h"
#include "probe/attention/blocks.h"

enum { FILE_MOST = 1 << 30, VERSION = 1, BLOCK_MOST = 4096, COUNT_MOST = 1 << 20 };

static const char magic[8] = {'a', 's', 's', 'a', 'y', 'b', 'l', 'k'};

struct reader {
	const char *place;
	const unsigned char *data;
	size_t size, at;
	struct attention_blocks *l;
	uint32_t b, h, q; /* the current row */
	struct error *err;
};

static uint32_t number(struct reader *r)
{
	const unsigned char *p = r->data + r->at;

	r->at += 4;
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static enum status header_number(struct reader *r, const char *name, uint32_t most, uint32_t *out)
{
	*out = number(r);
	if (*out >= 1 && *out <= most)
		return STATUS_OK;
	return error_set(r->err, STATUS_BAD_INPUT, "%s: offset %zu: %s is %" PRIu32 ", not 1 to %" PRIu32,
			 r->place, r->at - 4, name, *out, most);
}

static enum status read_header(struct reader *r, struct attention_blocks *sizes)
{
	const struct {
		const char *name;
		uint32_t most, *to;
	} parts[] = {
		{"the number of batches", 65536, &sizes->batches},
		{"the number of heads", 65536, &sizes->heads},
		{"the number of query blocks", COUNT_MOST, &sizes->q_blocks},
		{"the number of key blocks", COUNT_MOST, &sizes->k_blocks},
		{"the size of a query block", BLOCK_MOST, &sizes->q_block},
		{"the size of a key block", BLOCK_MOST, &sizes->k_block},
	};
	uint32_t version;
	enum status st = STATUS_OK;

	if (r->size < sizeof(magic) + 32)
		return error_set(
			r->err, STATUS_BAD_INPUT,
			"%s: the file ends at offset %zu, but a block file starts with a header of 40 bytes",
			r->place, r->size);
	if (memcmp(r->data, magic, sizeof(magic)))
		return error_set(r->err, STATUS_BAD_INPUT,
				 "%s: offset 0: not a block file: it does not start with \"assayblk\"",
				 r->place);
	r->at = sizeof(magic);
	version = number(r);
	if (version != VERSION)
		return error_set(r->err, STATUS_BAD_INPUT,
				 "%s: offset 8: version %" PRIu32
				 " of block files is not supported, only 1 is",
				 r->place, version);
	for (size_t i = 0; !st && i < sizeof(parts) / sizeof(parts[0]); i++)
		st = header_number(r, parts[i].name, parts[i].most, parts[i].to);
	if (!st && ((double)sizes->q_blocks * sizes->q_block > INT32_MAX ||
		    (double)sizes->k_blocks * sizes->k_block > INT32_MAX))
		st = error_set(r->err, STATUS_BAD_INPUT,
			       "%s: offset 20: the blocks have more than %d queries or keys in total",
			       r->place, INT32_MAX);
	if (!st && number(r))
		st = error_set(r->err, STATUS_BAD_INPUT,
			       "%s: offset 36: the last number of the header must be 0", r->place);
	return st;
}

static enum status cut(struct reader *r)
{
	return error_set(r->err, STATUS_BAD_INPUT,
			 "%s: the file ends at offset %zu, within (batch %" PRIu32 ", head %" PRIu32
			 ", query block %" PRIu32 ")",
			 r->place, r->size, r->b, r->h, r->q);
}

static enum status refuse(struct reader *r, uint32_t block, const char *what)
{
	return error_set(r->err, STATUS_BAD_INPUT,
			 "%s: offset %zu: (batch %" PRIu32 ", head %" PRIu32 ", query block %" PRIu32
			 "): key block %" PRIu32 " %s",
			 r->place, r->at - 4, r->b, r->h, r->q, block, what);
}

/* Reads one list of a row: ascending numbers below k_blocks. */
static enum status read_list(struct reader *r, uint32_t count, uint32_t **list, uint32_t *total)
{
	uint32_t before = 0;

	if (count > (r->size - r->at) / 4)
		return cut(r);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t block = number(r);

		if (block >= r->l->k_blocks)
			return refuse(r, block, "does not exist: the header has fewer key blocks");
		if (i && block == before)
			return refuse(r, block, "is in the list twice");
		if (i && block < before)
			return refuse(r, block, "follows a higher one; lists must be ascending");
		if (!attention_blocks_append(list, total, block))
			return error_set_cause(r->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "%s: not enough memory for the block lists", r->place);
		before = block;
	}
	return STATUS_OK;
}

/* Both lists are ascending, so one pass finds a block that is in both. */
static enum status apart(struct reader *r, struct attention_row row)
{
	for (uint32_t f = 0, p = 0; f < row.full_count && p < row.partial_count;) {
		if (row.full[f] == row.partial[p])
			return refuse(r, row.full[f], "is in both lists, as full and as partial");
		if (row.full[f] < row.partial[p])
			f++;
		else
			p++;
	}
	return STATUS_OK;
}

static enum status read_row(struct reader *r, uint32_t *full, uint32_t *partial)
{
	struct attention_blocks *l = r->l;
	size_t row = ((size_t)r->b * l->heads + r->h) * l->q_blocks + r->q;
	uint32_t full_count, partial_count;
	enum status st;

	if (r->size - r->at < 8)
		return cut(r);
	full_count = number(r);
	partial_count = number(r);
	st = read_list(r, full_count, &l->full, full);
	if (!st)
		st = read_list(r, partial_count, &l->partial, partial);
	if (st)
		return st;
	l->full_begin[row + 1] = *full;
	l->partial_begin[row + 1] = *partial;
	return apart(r, attention_blocks_row(l, r->b, r->h, r->q));
}

static enum status read_rows(struct reader *r)
{
	uint32_t full = 0, partial = 0;
	enum status st = STATUS_OK;

	for (r->b = 0; !st && r->b < r->l->batches; r->b++)
		for (r->h = 0; !st && r->h < r->l->heads; r->h++)
			for (r->q = 0; !st && r->q < r->l->q_blocks; r->q++)
				st = read_row(r, &full, &partial);
	if (!st && r->at != r->size)
		st = error_set(r->err, STATUS_BAD_INPUT,
			       "%s: offset %zu: %zu extra bytes after the last row's lists", r->place, r->at,
			       r->size - r->at);
	return st;
}

enum status attention_blocks_parse(struct attention_blocks **out, const char *place, const void *data,
				   size_t size, struct error *err)
{
	struct reader r = {.place = place, .data = data, .size = size, .err = err};
	struct attention_blocks sizes = {0};
	enum status st = read_header(&r, &sizes);
	double rows = (double)sizes.batches * sizes.heads * sizes.q_blocks;

	if (!st && rows * 8 > (double)(size - r.at)) /* each row has at least two counts */
		st = error_set(
			err, STATUS_BAD_INPUT,
			"%s: the file ends at offset %zu, too early for the %.0f rows of lists that the header declares",
			place, size, rows);
	if (st)
		return st;
	r.l = attention_blocks_create(&sizes);
	if (!r.l)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s: not enough memory for the block lists", place);
	st = read_rows(&r);
	if (st)
		attention_blocks_free(r.l);
	else
		*out = r.l;
	return st;
}

enum status attention_blocks_read(struct attention_blocks **out, const char *path, struct error *err)
{
	char *data = NULL;
	size_t size;
	enum status st = file_read(&data, &size, path, FILE_MOST, err);

	if (!st)
		st = attention_blocks_parse(out, path, data, size, err);
	free(data);
	return st;
}
