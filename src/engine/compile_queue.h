/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose grammar is being compiled. A thread of its own compiles, so that a large schema does not
 * delay the steps of others. Clients take turns, so that one client's schemas do not hold up the others. */
#ifndef ENGINE_COMPILE_QUEUE_H
#define ENGINE_COMPILE_QUEUE_H
#include "engine/grammar/grammar.h"
#include "engine/message.h"

struct compile_queue;
/* `vocab` must outlive the queue. Owner: caller, compile_queue_destroy. */
enum status compile_queue_create(struct compile_queue **q, const struct grammar_vocab *vocab,
				 struct error *err);
void compile_queue_destroy(
	struct compile_queue **q); /* NULL-safe; waits for the grammar that is being compiled */

/* Copies the request, which has a grammar. NO_RESOURCE: out of memory. */
enum status compile_queue_add(struct compile_queue *q, const struct engine_request *r, struct error *err);
/* False: no such request waits. Otherwise its grammar is not compiled, or thrown away. */
bool compile_queue_cancel(struct compile_queue *q, uint64_t id);
struct compile_end {
	uint64_t id;
	size_t prompt_count;
};
/* Takes out a request whose deadline is over and whose grammar is not compiled. False: none is late. */
bool compile_queue_expire(struct compile_queue *q, uint64_t now_ns, struct compile_end *end);
/* compile_queue_expire finds nothing before this time of the monotonic clock; UINT64_MAX: never. */
uint64_t compile_queue_wake(struct compile_queue *q);

struct compiled_request {
	struct engine_request request; /* what it points to is lent until compiled_release */
	struct grammar_state *state;   /* owned; NULL: `status` and `error` say why not */
	enum status status;
	struct error error;
	size_t warnings; /* keywords of the grammar that are not enforced */
	void *copy;
};
/* Takes out a request whose grammar is compiled or refused. False: none is ready. */
bool compile_queue_take(struct compile_queue *q, struct compiled_request *out);
void compiled_release(struct compiled_request *c); /* without its state */
/* Requests that are not taken out yet. */
size_t compile_queue_count(struct compile_queue *q);
/* Readable when a request is ready: for poll. */
int compile_queue_fd(const struct compile_queue *q);
#endif
