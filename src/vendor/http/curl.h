/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl, through our module libassay-curl.so, which needs it. So only the client process of a load test
 * loads it, and with it a TLS library. Types and constants are those of its own header.
 */
#ifndef VENDOR_HTTP_CURL_H
#define VENDOR_HTTP_CURL_H
#include <curl/curl.h>
#include "vendor/lib.h"

/* Columns: need, ret, field, symbol, params. */
#define CURL_FUNCTIONS(X)                                                                                    \
	X(REQUIRED, CURLcode, global_init, curl_global_init, (long flags))                                   \
	X(REQUIRED, void, global_cleanup, curl_global_cleanup, (void))                                       \
	X(REQUIRED, CURL *, easy_init, curl_easy_init, (void))                                               \
	X(REQUIRED, void, easy_cleanup, curl_easy_cleanup, (CURL *))                                         \
	X(REQUIRED, CURLcode, easy_setopt, curl_easy_setopt, (CURL *, CURLoption, ...))                      \
	X(REQUIRED, CURLcode, easy_getinfo, curl_easy_getinfo, (CURL *, CURLINFO, ...))                      \
	X(REQUIRED, CURLcode, easy_perform, curl_easy_perform, (CURL *))                                     \
	X(REQUIRED, const char *, easy_strerror, curl_easy_strerror, (CURLcode))                             \
	X(REQUIRED, CURLM *, multi_init, curl_multi_init, (void))                                            \
	X(REQUIRED, CURLMcode, multi_cleanup, curl_multi_cleanup, (CURLM *))                                 \
	X(REQUIRED, CURLMcode, multi_setopt, curl_multi_setopt, (CURLM *, CURLMoption, ...))                 \
	X(REQUIRED, CURLMcode, multi_add_handle, curl_multi_add_handle, (CURLM *, CURL *))                   \
	X(REQUIRED, CURLMcode, multi_remove_handle, curl_multi_remove_handle, (CURLM *, CURL *))             \
	X(REQUIRED, CURLMcode, multi_socket_action, curl_multi_socket_action,                                \
	  (CURLM *, curl_socket_t, int events, int *running))                                                \
	X(REQUIRED, CURLMcode, multi_assign, curl_multi_assign, (CURLM *, curl_socket_t, void *))            \
	X(REQUIRED, CURLMsg *, multi_info_read, curl_multi_info_read, (CURLM *, int *left))                  \
	X(REQUIRED, struct curl_slist *, slist_append, curl_slist_append,                                    \
	  (struct curl_slist *, const char *))                                                               \
	X(REQUIRED, void, slist_free_all, curl_slist_free_all, (struct curl_slist *))                        \
	X(REQUIRED, char *, version, curl_version, (void))

struct curl {
#define X(need, ret, field, symbol, params) ret(*field) params;
	CURL_FUNCTIONS(X)
#undef X
};
/* Fills the table. UNAVAILABLE: the module or its library is missing; the message names it. */
enum status curl_open(struct curl *table, struct error *err);
#endif
