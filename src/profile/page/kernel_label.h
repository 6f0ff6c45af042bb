/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short labels of kernel names, for people. C++ names of kernels have hundreds of characters; a label begins
 * with the function's name and keeps the template arguments that fit:
 *
 *   vectorized_elementwise_kernel<4, FillFunctor<float>, …>
 *
 * Files for programs keep the whole name.
 */
#ifndef PROFILE_PAGE_KERNEL_LABEL_H
#define PROFILE_PAGE_KERNEL_LABEL_H
#include "core/text/text.h"

enum { KERNEL_LABEL_WIDTH = 60 };

/*
 * Appends the label of a kernel, at most `width` characters (16 or more) of clean UTF-8. `name`: demangled,
 * mangled or of another language; any bytes. A name that reads as no C++ function is shown as it is, cut in
 * the middle. Time is linear in the name's length; memory too.
 */
void kernel_label(struct text *out, const char *name, size_t width);

/* The labels of one table. Valid and empty when zeroed and after kernel_labels_release. */
struct kernel_labels {
	char **label;
	size_t count;
};
/* The label of the next row; " #2", " #3".. behind one that an earlier row has, beyond `width`. Owned by
 * `all`. NULL: memory. */
const char *kernel_labels_add(struct kernel_labels *all, const char *name, size_t width);
void kernel_labels_release(struct kernel_labels *all);
#endif
