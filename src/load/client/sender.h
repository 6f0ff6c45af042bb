/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sender thread: sends the requests of its agenda when they are due, and receives their answers. It
 * parses nothing; finished flights go to the parser.
 */
#ifndef LOAD_CLIENT_SENDER_H
#define LOAD_CLIENT_SENDER_H
#include <stdatomic.h>
#include "load/client/agenda.h"
#include "load/client/client.h"
#include "load/client/flight.h"
#include "load/client/times.h"

struct sender {
	/* Set by the owner before the thread starts. */
	const struct load_client_spec *spec;
	const struct load_plan *plan;
	struct flight_queue *finished;
	atomic_bool *failed;	      /* of a thread: all of them end */
	uint64_t epoch_ns, begin_ns;  /* the run's begin on CLOCK_MONOTONIC; the plan's begin after it */
	unsigned number, connections; /* this thread; its most open requests */

	/* Results, valid once the thread has ended. */
	enum status status;
	struct error error;
	double cpu_share;
	uint64_t waited, dropped; /* requests that waited for the cap; later turns that were not sent */
	struct load_times late;	  /* bound on the time between the arrival of bytes and their reading */

	struct flight_queue back; /* from the parser: to be used again; of a dialogue, the answer was read */
	int wake;		  /* eventfd that announces them */

	/* Of the thread alone. */
	struct agenda *agenda;
	CURLM *multi;
	int poll, timer; /* epoll; timerfd */
	uint64_t curl_due_ns, send_end_ns,
		clear_ns;		 /* clear_ns: end of the last wait that returned all events */
	uint64_t armed_ns;		 /* the timer ends then */
	uint64_t counted_ns, counted;	 /* events of sockets since then */
	bool dense;			 /* so many that a wait is to return several of them */
	struct flight_list open;	 /* in flight */
	struct flight *spare, *prepared; /* lists; prepared: with their bodies */
	uint32_t unread;		 /* answers of a dialogue with the parser */
	uint64_t full_ns; /* the last look at which a request was due and the cap was reached */
};
/* Main function of the thread; `arg` is a struct sender. */
void *sender_main(void *arg);
enum status sender_create(struct sender *s, struct error *err);
/* After the thread has ended and the parser has given all flights back. */
void sender_release(struct sender *s);
/* From the parser: the answer was read. */
void sender_give_back(struct sender *s, struct flight *f);
#endif
