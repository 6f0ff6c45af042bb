/* SPDX-License-Identifier: Apache-2.0 */
#include "load/client/http.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "load/client/tls.h"

/* IDLE_S: a connection that was idle for longer is not used again. Servers close theirs after 5 s and more.
 */
enum {
	IDLE_S = 4,
	GET_MS = 10000,
	READING_MS = 2000,
	GET_BYTES_MOST = 16 << 20,
	URL_MOST = 2048,
	NAMES_KEPT_FOREVER = -1
};

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the HTTP client");
}

/* Appends a header. False: no memory; then the list stays as it was. */
static bool add_header(struct http *h, const char *line)
{
	struct curl_slist *more = h->curl.slist_append(h->headers, line);

	if (more)
		h->headers = more;
	return more;
}

static enum status make_headers(struct http *h, struct error *err)
{
	struct text line = {0};
	/* "Expect:" takes away curl's question before a large body, which costs a round trip */
	bool ok = add_header(h, "Content-Type: application/json") && add_header(h, "Expect:");

	if (h->o.key) {
		text_addf(&line, "Authorization: Bearer %s", h->o.key);
		ok = ok && !line.failed && add_header(h, text_str(&line));
	}
	text_release(&line);
	return ok ? STATUS_OK : no_memory(err);
}

enum status http_open(struct http *h, const struct http_options *o, struct error *err)
{
	enum status st;

	*h = (struct http){.o = *o};
	if (strncmp(o->base, "http://", 7) != 0 && strncmp(o->base, "https://", 8) != 0)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: not an address; it must begin with http:// or https://", o->base);
	st = curl_open(&h->curl, err);
	if (st)
		return st;
	if (h->curl.global_init(CURL_GLOBAL_ALL))
		return no_memory(err);
	return make_headers(h, err);
}

void http_release(struct http *h)
{
	if (!h->curl.slist_free_all)
		return;
	h->curl.slist_free_all(h->headers);
	h->curl.slist_free_all(h->address);
	h->curl.global_cleanup();
	*h = (struct http){0};
}

static void set_security(const struct http *h, CURL *c)
{
	h->curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	h->curl.easy_setopt(c, CURLOPT_PROXY, "");
	h->curl.easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	if (h->o.authorities)
		h->curl.easy_setopt(c, CURLOPT_CAINFO, h->o.authorities);
	if (h->o.insecure) {
		h->curl.easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
		h->curl.easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

CURL *http_handle(const struct http *h, const char *path, bool post)
{
	CURL *c = h->curl.easy_init();
	char url[URL_MOST];

	if (!c)
		return NULL;
	snprintf(url, sizeof(url), "%s%s", h->o.base, path);
	h->curl.easy_setopt(c, CURLOPT_URL, url);
	h->curl.easy_setopt(c, CURLOPT_POST, (long)post);
	if (!post)
		h->curl.easy_setopt(c, CURLOPT_HTTPGET, 1L);
	h->curl.easy_setopt(c, CURLOPT_HTTPHEADER, h->headers);
	h->curl.easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	h->curl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	h->curl.easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
	h->curl.easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)h->o.connect_ms);
	h->curl.easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)h->o.request_ms);
	h->curl.easy_setopt(c, CURLOPT_MAXAGE_CONN, (long)IDLE_S);
	h->curl.easy_setopt(c, CURLOPT_DNS_CACHE_TIMEOUT, (long)NAMES_KEPT_FOREVER);
	if (h->address)
		h->curl.easy_setopt(c, CURLOPT_RESOLVE, h->address);
	set_security(h, c);
	return c;
}

static enum load_error error_of_status(long status)
{
	if (status == 429)
		return LOAD_ERROR_LIMITED;
	if (status == 503)
		return LOAD_ERROR_UNAVAILABLE;
	if (status >= 500)
		return LOAD_ERROR_SERVER;
	if (status >= 400)
		return LOAD_ERROR_REFUSED;
	if (status >= 300)
		return LOAD_ERROR_REDIRECT;
	return status == 200 ? LOAD_ERROR_NONE : LOAD_ERROR_GARBAGE;
}

/* No descriptor, port or memory of our own, not a refusal of the server. */
static bool is_own_fault(long errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == EADDRNOTAVAIL || errnum == ENOBUFS ||
	       errnum == ENOMEM;
}

static enum load_error error_of_connection(const struct http *h, CURL *c)
{
	long errnum = 0;

	h->curl.easy_getinfo(c, CURLINFO_OS_ERRNO, &errnum);
	return is_own_fault(errnum) ? LOAD_ERROR_CLIENT : LOAD_ERROR_CONNECT;
}

/* Errors of the system that end a connection. Not those of an address that was tried before the one that
 * answered, which libcurl keeps too. */
static bool is_lost(long errnum)
{
	return errnum == ECONNRESET || errnum == EPIPE || errnum == ETIMEDOUT || errnum == ECONNABORTED ||
	       errnum == ENOTCONN || errnum == EHOSTUNREACH || errnum == ENETUNREACH || errnum == ENETDOWN;
}

/* Without TLS, libcurl has an error of the system for a lost connection, and none for bytes that it refused:
 * a header without end, or a chunk whose size is no number. */
static enum load_error error_of_reading(const struct http *h, CURL *c)
{
	long errnum = 0;

	h->curl.easy_getinfo(c, CURLINFO_OS_ERRNO, &errnum);
	return is_lost(errnum) || !strncmp(h->o.base, "https:", 6) ? LOAD_ERROR_RESET : LOAD_ERROR_GARBAGE;
}

/* The time limit ran out before there was a connection, or after that. */
static enum load_error error_of_time(const struct http *h, CURL *c)
{
	curl_off_t sending_us = 0;

	h->curl.easy_getinfo(c, CURLINFO_PRETRANSFER_TIME_T, &sending_us);
	return sending_us > 0 ? LOAD_ERROR_TIMEOUT : LOAD_ERROR_CONNECT;
}

enum load_error http_error(const struct http *h, CURL *c, CURLcode code)
{
	long status = 0;

	h->curl.easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	switch (code) {
	case CURLE_OK:
		return error_of_status(status);
	case CURLE_COULDNT_RESOLVE_HOST:
		return LOAD_ERROR_DNS;
	case CURLE_COULDNT_CONNECT:
	case CURLE_INTERFACE_FAILED:
		return error_of_connection(h, c);
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return LOAD_ERROR_TLS;
	case CURLE_OPERATION_TIMEDOUT:
		return error_of_time(h, c);
	case CURLE_RECV_ERROR:
		return error_of_reading(h, c);
	case CURLE_SEND_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_ABORTED_BY_CALLBACK: /* a second connection would be used, see flight.c */
		return LOAD_ERROR_RESET;
	case CURLE_PARTIAL_FILE:
		return LOAD_ERROR_CUT;
	case CURLE_OUT_OF_MEMORY:
	case CURLE_FAILED_INIT:
		return LOAD_ERROR_CLIENT;
	case CURLE_WRITE_ERROR: /* too large, see flight.c */
	default:
		return LOAD_ERROR_GARBAGE;
	}
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct text *out = arg;

	if (out->size + size * count > GET_BYTES_MOST)
		return 0;
	text_add_bytes(out, data, size * count);
	return out->failed ? 0 : size * count;
}

/* "host:port:address", for CURLOPT_RESOLVE. An address in brackets or a number needs none. */
static void remember_address(struct http *h, CURL *c)
{
	const char *host = strstr(h->o.base, "://") + 3, *ip = NULL;
	const size_t size = strcspn(host, ":/");
	long port = 0;
	struct text line = {0};

	h->curl.easy_getinfo(c, CURLINFO_PRIMARY_IP, &ip);
	h->curl.easy_getinfo(c, CURLINFO_PRIMARY_PORT, &port);
	if (!ip || !*ip || *host == '[' || h->address)
		return;
	text_add_bytes(&line, host, size);
	text_addf(&line, ":%ld:%s", port, ip);
	if (!line.failed)
		h->address = h->curl.slist_append(NULL, text_str(&line));
	text_release(&line);
}

/* What happened, and for TLS what the user can do. `words`: libcurl's. */
static enum status transfer_error(const struct http *h, CURL *c, CURLcode code, const char *path,
				  const char *words, struct error *err)
{
	const char *reason = code == CURLE_PEER_FAILED_VERIFICATION ? load_tls_reason(&h->curl, c) : NULL;

	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_SERVER_UNREACHABLE,
			"%s%s: the server's certificate is refused: %s; give the file of the authority that signed it with "
			"--ca-file, or accept any certificate with --insecure",
			h->o.base, path, reason ? reason : words);
	if (code == CURLE_WRITE_ERROR) /* libcurl's words are about a file */
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_SERVER_UNREACHABLE,
				       "%s%s: the answer is larger than %d MB, so it was not read to its end",
				       h->o.base, path, GET_BYTES_MOST >> 20);
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_SERVER_UNREACHABLE, "%s%s: %s", h->o.base, path,
			       words);
}

/* Performs a transfer and appends the body of its answer to *out. */
static enum status perform(const struct http *h, CURL *c, const char *path, long *status, struct text *out,
			   struct error *err)
{
	char why[CURL_ERROR_SIZE] = "";
	CURLcode code;

	h->curl.easy_setopt(c, CURLOPT_ERRORBUFFER, why);
	h->curl.easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
	h->curl.easy_setopt(c, CURLOPT_WRITEDATA, out);
	code = h->curl.easy_perform(c);
	h->curl.easy_getinfo(c, CURLINFO_RESPONSE_CODE, status);
	if (code == CURLE_OK)
		return STATUS_OK;
	return transfer_error(h, c, code, path, *why ? why : h->curl.easy_strerror(code), err);
}

static enum status get(const struct http *h, const char *path, long *status, struct text *out,
		       struct http *remember, struct error *err)
{
	CURL *c = http_handle(h, path, false);
	enum status st;

	*status = 0;
	if (!c)
		return no_memory(err);
	h->curl.easy_setopt(c, CURLOPT_TIMEOUT_MS, remember ? (long)GET_MS : (long)READING_MS);
	st = perform(h, c, path, status, out, err);
	if (!st && remember)
		remember_address(remember, c);
	h->curl.easy_cleanup(c);
	return st;
}

enum status http_get(const struct http *h, const char *path, long *status, struct text *out,
		     struct error *err)
{
	return get(h, path, status, out, NULL, err);
}

enum status http_meet(struct http *h, const char *path, long *status, struct text *out, struct error *err)
{
	return get(h, path, status, out, h, err);
}

enum status http_post(const struct http *h, const char *path, const struct text *body, long *status,
		      struct text *out, struct error *err)
{
	CURL *c = http_handle(h, path, true);
	enum status st;

	*status = 0;
	if (!c)
		return no_memory(err);
	h->curl.easy_setopt(c, CURLOPT_POSTFIELDS, text_str(body));
	h->curl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size);
	st = perform(h, c, path, status, out, err);
	h->curl.easy_cleanup(c);
	return st;
}
