/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How requests are sent: libcurl's settings for one server, and the meaning of its results. Redirects and
 * proxies of the environment are not used, so that only the host that the user named is contacted.
 */
#ifndef LOAD_CLIENT_HTTP_H
#define LOAD_CLIENT_HTTP_H
#include "core/text/text.h"
#include "load/record/record.h"
#include "vendor/http/curl.h"

struct http_options {
	const char *base;		 /* "http://host:8000", without a slash at its end */
	const char *key;		 /* of the API; NULL: none */
	const char *authorities;	 /* PEM file of certificate authorities; NULL: the system's */
	bool insecure;			 /* accept any certificate */
	unsigned connect_ms, request_ms; /* time limits of a connection and of a request */
};

struct http {
	struct curl curl;
	struct http_options o;
	struct curl_slist *headers, *address;
};
/* Loads libcurl. The options' texts must outlive *h. UNAVAILABLE: libcurl is missing; BAD_INPUT: no http or
 * https address. Owner: caller, http_release. */
enum status http_open(struct http *h, const struct http_options *o, struct error *err);
void http_release(struct http *h);
/* A handle that posts JSON to `path`, or gets it if `post` is false. NULL: no memory. Owner: caller,
 * easy_cleanup. */
CURL *http_handle(const struct http *h, const char *path, bool post);
/* What went wrong with the transfer of a handle. */
enum load_error http_error(const struct http *h, CURL *c, CURLcode code);
/* Gets `path` and appends the body to *out. *status: the HTTP status. NO_RESOURCE or UNAVAILABLE names
 * address and reason. */
enum status http_get(const struct http *h, const char *path, long *status, struct text *out,
		     struct error *err);
/* The same, before other threads use *h: remembers the address of the host, so that its name is resolved only
 * once. */
enum status http_meet(struct http *h, const char *path, long *status, struct text *out, struct error *err);
/* Posts JSON and appends the body of the answer to *out. */
enum status http_post(const struct http *h, const char *path, const struct text *body, long *status,
		      struct text *out, struct error *err);
#endif
