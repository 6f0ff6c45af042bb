/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of conversations in files: a JSON value a line, or one JSON array of them. Each row by itself is chat
 * (messages, tools), ShareGPT (conversations) or Glaive v2 (system, chat).
 */
#ifndef TRAIN_DATA_ROWS_H
#define TRAIN_DATA_ROWS_H
#include <stdint.h>
#include "model/chat/chat.h"

/* In the order of the choices of a configuration's `format`. */
enum rows_format { ROWS_AUTO, ROWS_CHAT, ROWS_GLAIVE, ROWS_SHAREGPT };

struct rows_place {
	const char *text; /* into the file */
	size_t size;
	size_t line; /* 1-based: where it begins */
};

struct rows {
	char *path;
	void *map;
	uint64_t map_size;
	struct rows_place *place;
	size_t count, room;
};

/* Maps the file and finds its rows. No rows: BAD_INPUT. Owner: caller, rows_release. */
enum status rows_open(struct rows *r, const char *path, struct error *err);
/* The same from memory, which outlives *r; `path` leads messages. */
enum status rows_scan(struct rows *r, const char *path, const char *text, uint64_t size, struct error *err);
void rows_release(struct rows *r);
/* Row i as a conversation; AUTO goes by its keys. BAD_INPUT: "path:line: why". Owner: caller, chat_release.
 */
enum status rows_read(const struct rows *r, size_t i, enum rows_format format, struct chat *out,
		      struct error *err);
/* A row's text as a conversation's JSON object, without its place in messages. Owner: caller. */
enum status rows_parse(json_t **out, const char *text, size_t size, enum rows_format format,
		       struct error *err);

/* A parsed row of a format as {"messages", "tools"}. Owner: caller, json_decref. */
enum status rows_of_glaive(json_t **out, const json_t *row, struct error *err);
enum status rows_of_sharegpt(json_t **out, const json_t *row, struct error *err);
#endif
