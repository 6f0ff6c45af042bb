/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short labels for kernel names. C++ names of kernels have hundreds of characters. A label begins with the
 * name of the function and keeps the template arguments that fit:
 *
 *   vectorized_elementwise_kernel<4, FillFunctor<float>, …>
 *
 * JSON and CSV files keep the full name.
 */
#ifndef PROFILE_PAGE_KERNEL_LABEL_H
#define PROFILE_PAGE_KERNEL_LABEL_H
#include "core/text/text.h"

enum { KERNEL_LABEL_WIDTH = 60 };

/* Appends the label of a kernel: at most `width` characters (16 or more) of valid UTF-8. `name` may be
 * demangled, mangled or from another language, and may contain any bytes. A name that cannot be parsed as a
 * C++ function is shown as it is, with its middle cut out if it is too long. Time and memory are linear in
 * the length of the name. */
void kernel_label(struct text *out, const char *name, size_t width);

/* The labels of one table. Valid and empty if zeroed, and after kernel_labels_release. */
struct kernel_labels {
	char **label;
	size_t count;
};
/* The label of the next row. If an earlier row has the same label, " #2", " #3".. is appended beyond `width`.
 * Owned by `all`. NULL: out of memory. */
const char *kernel_labels_add(struct kernel_labels *all, const char *name, size_t width);
void kernel_labels_release(struct kernel_labels *all);
#endif
