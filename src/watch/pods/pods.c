/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/pods/pods.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/text/text.h"
#include "vendor/http/curl.h"

enum { ASK_MS = 3000, ANSWER_MOST = 16 << 20, PREFIX = 5 };

static const char usual_socket[] = "/var/lib/kubelet/pod-resources/kubelet.sock";

const char *pods_socket(void)
{
	const char *given = getenv("DCGM_POD_RESOURCES_KUBELET_SOCKET");

	if (given && *given)
		return given;
	/* a folder that this user may not read hides the socket, which is to be said */
	return !access(usual_socket, F_OK) || errno == EACCES ? usual_socket : NULL;
}

enum status pods_read(json_t **pods, const void *answer, size_t size, struct error *err)
{
	const uint8_t *byte = answer;
	size_t length = size < PREFIX ? 0
				      : (size_t)byte[1] << 24 | (size_t)byte[2] << 16 | (size_t)byte[3] << 8 |
						byte[4];
	enum status st;

	*pods = NULL;
	if (size < PREFIX || length != size - PREFIX)
		return error_set(err, STATUS_BAD_INPUT,
				 "the kubelet's answer has %zu bytes, which is not one message of gRPC",
				 size);
	if (byte[0])
		return error_set(err, STATUS_BAD_INPUT, "the kubelet's answer is compressed");
	*pods = json_object();
	st = pods_message_read(*pods, byte + PREFIX, length, err);
	if (st) {
		json_decref(*pods);
		*pods = NULL;
	}
	return st;
}

/* An answer while it arrives. The trailers end it. */
struct answer {
	struct text body;
	long status; /* of gRPC; -1: it was not told */
	char words[128];
};

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct answer *a = arg;

	if (a->body.size + size * count > ANSWER_MOST)
		return 0;
	text_add_bytes(&a->body, data, size * count);
	return a->body.failed ? 0 : size * count;
}

/* The value of a header line of this name. False: it is another one. */
static bool header(const char *line, size_t size, const char *name, char *out, size_t room)
{
	const size_t length = strlen(name);
	size_t end = size;

	if (size <= length || strncasecmp(line, name, length) != 0)
		return false;
	while (end > length && (line[end - 1] == '\r' || line[end - 1] == '\n'))
		end--;
	snprintf(out, room, "%.*s", (int)(end - length), line + length);
	return true;
}

static size_t take_header(char *data, size_t size, size_t count, void *arg)
{
	struct answer *a = arg;
	char number[16], *rest;

	size *= count;
	if (header(data, size, "grpc-status: ", number, sizeof(number)))
		a->status = strtol(number, &rest, 10);
	header(data, size, "grpc-message: ", a->words, sizeof(a->words));
	return size;
}

static void set_options(const struct curl *l, CURL *c, const char *socket, struct answer *a,
			struct curl_slist *headers)
{
	static const char nothing[PREFIX]; /* an empty message */

	l->easy_setopt(c, CURLOPT_URL, "http://localhost/v1.PodResourcesLister/List");
	l->easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, socket);
	l->easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	l->easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	l->easy_setopt(c, CURLOPT_POSTFIELDS, nothing);
	l->easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)PREFIX);
	l->easy_setopt(c, CURLOPT_PROXY, "");
	l->easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	l->easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)ASK_MS);
	l->easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
	l->easy_setopt(c, CURLOPT_WRITEDATA, a);
	l->easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
	l->easy_setopt(c, CURLOPT_HEADERDATA, a);
}

/* What the kubelet answered, if it is no list. */
static enum status check(const struct curl *l, CURL *c, CURLcode code, const struct answer *a,
			 const char *socket, struct error *err)
{
	long system = 0, http = 0;

	l->easy_getinfo(c, CURLINFO_OS_ERRNO, &system);
	l->easy_getinfo(c, CURLINFO_RESPONSE_CODE, &http);
	if (code)
		return error_set(err, STATUS_UNAVAILABLE, "%s: %s", socket,
				 code == CURLE_COULDNT_CONNECT && system ? strerror((int)system)
									 : l->easy_strerror(code));
	if (http != 200)
		return error_set(err, STATUS_UNAVAILABLE, "%s: HTTP status %ld", socket, http);
	if (a->status < 0)
		return error_set(err, STATUS_UNAVAILABLE, "%s: the answer ended without a status of gRPC",
				 socket);
	if (a->status)
		return error_set(err, STATUS_UNAVAILABLE, "%s: gRPC status %ld%s%s", socket, a->status,
				 *a->words ? ": " : "", a->words);
	return STATUS_OK;
}

static enum status ask(const struct curl *l, json_t **pods, const char *socket, struct error *err)
{
	struct curl_slist *headers = l->slist_append(NULL, "Content-Type: application/grpc"),
			  *more = headers ? l->slist_append(headers, "TE: trailers") : NULL;
	struct answer a = {.status = -1};
	CURL *c = l->easy_init();
	enum status st;

	if (c && more) {
		set_options(l, c, socket, &a, headers);
		st = check(l, c, l->easy_perform(c), &a, socket, err);
	} else {
		st = error_set(err, STATUS_NO_RESOURCE, "no memory for a question to the kubelet");
	}
	if (!st)
		st = pods_read(pods, text_str(&a.body), a.body.size, err);
	if (c)
		l->easy_cleanup(c);
	l->slist_free_all(headers);
	text_release(&a.body);
	return st;
}

enum status pods_ask(json_t **pods, const char *socket, struct error *err)
{
	struct curl l = {0};
	enum status st = curl_open(&l, err);

	*pods = NULL;
	return st ? st : ask(&l, pods, socket, err);
}
