/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prometheus' web configuration file: TLS, users with bcrypt hashes, and headers. Its settings are security
 * settings, so one that assay does not have is an error and is not ignored.
 */
#ifndef WATCH_SERVE_WEB_CONFIG_H
#define WATCH_SERVE_WEB_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

enum { WEB_USERS_MOST = 64, WEB_HEADERS = 5, WEB_COST_MOST = 14, WEB_HASH_SIZE = 60 };

struct web_user {
	char *name;
	char hash[WEB_HASH_SIZE + 1];
};
/* Zeroed is empty: HTTP without users. */
struct web_config {
	char *certificate, *key;      /* PEM; NULL: no TLS */
	unsigned tls_least, tls_most; /* 12 or 13 */
	struct web_user user[WEB_USERS_MOST];
	size_t user_count;
	char *header[WEB_HEADERS]; /* values by web_header_name; NULL: not sent */
	/* the line that asks for HTTP/2 over TLS; 0: none. It is not served, and every client of it speaks
	 * HTTP/1.1 too, so this is worth a warning and no error. */
	int http2_line;
};

/* Reads the file and the files that it names; relative paths start at its folder. BAD_INPUT: file, line and
 * reason. Owner: caller, web_config_release, also after an error. */
enum status web_config_read(struct web_config *c, const char *path, struct error *err);
/* Reads the text of such a file; `name` stands for it in messages. The files that it names are not opened. */
enum status web_config_parse(struct web_config *c, const char *name, const char *text, size_t size,
			     struct error *err);
void web_config_release(struct web_config *c);
bool web_config_equal(const struct web_config *a, const struct web_config *b);
const char *web_header_name(size_t i);
#endif
