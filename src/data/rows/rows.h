/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of conversations: one JSON value per line, or one JSON array. Each row has its own format: chat
 * (messages, tools), ShareGPT (conversations) or Glaive v2 (system, chat).
 */
#ifndef DATA_ROWS_ROWS_H
#define DATA_ROWS_ROWS_H
#include <stdint.h>
#include "text/chat/chat.h"

/* Same order as the values of the setting `format`. */
enum rows_format { ROWS_AUTO, ROWS_CHAT, ROWS_GLAIVE, ROWS_SHAREGPT };

struct rows_place {
	const char *text; /* points into the file */
	size_t size;
	size_t line; /* 1-based line of its first byte */
};

struct rows {
	char *path;
	void *map;
	uint64_t map_size;
	struct rows_place *place;
	size_t count, room;
};

/* Maps the file and finds its rows. BAD_INPUT if there are none. Owner: caller, rows_release. */
enum status rows_open(struct rows *r, const char *path, struct error *err);
/* The same for text in memory, which must outlive *r. `path` is used in messages. */
enum status rows_scan(struct rows *r, const char *path, const char *text, uint64_t size, struct error *err);
void rows_release(struct rows *r);
/* Parses row i as a conversation; AUTO detects its format from its keys. BAD_INPUT: "path:line: why". Owner:
 * caller, chat_release. */
enum status rows_read(const struct rows *r, size_t i, enum rows_format format, struct chat *out,
		      struct error *err);
/* Parses the text of a row into a conversation's JSON object. Messages have no path and line. Owner: caller.
 */
enum status rows_parse(json_t **out, const char *text, size_t size, enum rows_format format,
		       struct error *err);

/* Converts a parsed row of the format to {"messages", "tools"}. Owner: caller, json_decref. */
enum status rows_of_glaive(json_t **out, const json_t *row, struct error *err);
enum status rows_of_sharegpt(json_t **out, const json_t *row, struct error *err);
#endif
