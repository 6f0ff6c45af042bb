/* SPDX-License-Identifier: Apache-2.0 */
/* Thoughts of a model between <think> and </think>, and where the answer to a prompt begins. */
#ifndef TEXT_CHAT_THOUGHT_H
#define TEXT_CHAT_THOUGHT_H
#include "text/chat/template.h"

enum thought {
	THOUGHT_NONE,	/* the answer begins without a thought */
	THOUGHT_LIKELY, /* the model may begin with <think> */
	THOUGHT_OPEN,	/* the prompt ends within a thought */
};
/* Whether an answer usually begins with a thought. */
bool thought_comes_first(const struct template *t);
/* `prompt`: a rendered conversation that ends with the header of an assistant's turn. */
enum thought thought_at_end(const struct text *prompt, bool comes_first);
#endif
