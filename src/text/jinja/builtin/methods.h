/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of values; `self` is the value on the left of the dot. */
#ifndef TEXT_JINJA_BUILTIN_METHODS_H
#define TEXT_JINJA_BUILTIN_METHODS_H
#include "text/jinja/run.h"

#define METHOD(name)                                                                                         \
	static bool name(struct jinja_run *r, const struct value *self, const struct slots *s,               \
			 struct value *out)

/* NULL: strings have no such method. */
const struct function *method_of_string(const struct value *name);
#endif
