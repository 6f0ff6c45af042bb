/* SPDX-License-Identifier: Apache-2.0 */
/* The parser thread: reads finished answers and passes their records on, in the order in which they ended. */
#ifndef LOAD_CLIENT_PARSER_H
#define LOAD_CLIENT_PARSER_H
#include "load/client/sender.h"

struct parser {
	const struct load_client_spec *spec;
	struct flight_queue finished; /* from the senders; closed when they have ended */
	struct sender *senders;
	atomic_bool *failed;
	uint64_t epoch_ns;
	enum status status;
	struct error error;
	double behind_s; /* the longest time between the end of an answer and its reading */
};
/* Main function of the thread; `arg` is a struct parser. Ends when the queue is closed and empty. */
void *parser_main(void *arg);
#endif
