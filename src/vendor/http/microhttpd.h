/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd, through our module libassay-http.so, which needs it. So only a server's front end loads it,
 * and with it GnuTLS and what that needs. Types and constants are those of its own header.
 */
#ifndef VENDOR_HTTP_MICROHTTPD_H
#define VENDOR_HTTP_MICROHTTPD_H
#include <microhttpd.h>
#include "vendor/lib.h"

/* Columns: need, ret, field, symbol, params. */
#define MICROHTTPD_FUNCTIONS(X)                                                                              \
	X(REQUIRED, struct MHD_Daemon *, start_daemon, MHD_start_daemon,                                     \
	  (unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept, void *accept_arg,                 \
	   MHD_AccessHandlerCallback handler, void *handler_arg, ...))                                       \
	X(REQUIRED, void, stop_daemon, MHD_stop_daemon, (struct MHD_Daemon *))                               \
	X(REQUIRED, MHD_socket, quiesce_daemon, MHD_quiesce_daemon, (struct MHD_Daemon *))                   \
	X(REQUIRED, enum MHD_Result, run, MHD_run, (struct MHD_Daemon *))                                    \
	X(REQUIRED, enum MHD_Result, get_timeout, MHD_get_timeout,                                           \
	  (struct MHD_Daemon *, MHD_UNSIGNED_LONG_LONG * ms))                                                \
	X(REQUIRED, const union MHD_DaemonInfo *, get_daemon_info, MHD_get_daemon_info,                      \
	  (struct MHD_Daemon *, enum MHD_DaemonInfoType, ...))                                               \
	X(REQUIRED, enum MHD_Result, is_feature_supported, MHD_is_feature_supported, (enum MHD_FEATURE))     \
	X(REQUIRED, const union MHD_ConnectionInfo *, get_connection_info, MHD_get_connection_info,          \
	  (struct MHD_Connection *, enum MHD_ConnectionInfoType, ...))                                       \
	X(REQUIRED, const char *, lookup_connection_value, MHD_lookup_connection_value,                      \
	  (struct MHD_Connection *, enum MHD_ValueKind, const char *name))                                   \
	X(REQUIRED, int, get_connection_values, MHD_get_connection_values,                                   \
	  (struct MHD_Connection *, enum MHD_ValueKind, MHD_KeyValueIterator each, void *arg))               \
	X(REQUIRED, void, suspend_connection, MHD_suspend_connection, (struct MHD_Connection *))             \
	X(REQUIRED, void, resume_connection, MHD_resume_connection, (struct MHD_Connection *))               \
	X(REQUIRED, enum MHD_Result, queue_response, MHD_queue_response,                                     \
	  (struct MHD_Connection *, unsigned code, struct MHD_Response *))                                   \
	X(REQUIRED, struct MHD_Response *, create_response_from_buffer, MHD_create_response_from_buffer,     \
	  (size_t size, void *data, enum MHD_ResponseMemoryMode))                                            \
	X(REQUIRED, struct MHD_Response *, create_response_from_callback, MHD_create_response_from_callback, \
	  (uint64_t size, size_t block, MHD_ContentReaderCallback read, void *arg,                           \
	   MHD_ContentReaderFreeCallback release))                                                           \
	X(REQUIRED, enum MHD_Result, add_response_header, MHD_add_response_header,                           \
	  (struct MHD_Response *, const char *name, const char *value))                                      \
	X(REQUIRED, void, destroy_response, MHD_destroy_response, (struct MHD_Response *))

struct microhttpd {
#define X(need, ret, field, symbol, params) ret(*field) params;
	MICROHTTPD_FUNCTIONS(X)
#undef X
};
/* Fills the table. UNAVAILABLE: the module or its library is missing; the message names it. */
enum status microhttpd_open(struct microhttpd *table, struct error *err);
#endif
