/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of an answer: its header, whole bodies, and replies that are no answer. Only for answer.c. */
#ifndef TESTS_LOAD_ANSWER_PARTS_H
#define TESTS_LOAD_ANSWER_PARTS_H
#include "load/answer.h"

bool answer_fault_is(const struct answer *a, enum stub_fault f);
bool answer_closes(const struct answer *a); /* the connection ends with the answer */
enum answer_next answer_finish(struct answer *a, const char *end, enum answer_next next);
/* NULL: none is reported. The usage lies in *a. */
const struct usage *answer_report_usage(struct answer *a);
void answer_add_header(const struct answer *a, struct buf *out, uint64_t length);
void answer_add_body(struct answer *a, struct buf *out);
enum answer_next answer_step_whole(struct answer *a, struct buf *out);
enum answer_next answer_step_reply(struct answer *a, struct buf *out);
#endif
