/* SPDX-License-Identifier: Apache-2.0 */
/* PROFILE.md: what a profile found, for people; and what it lacks, with the reason. */
#ifndef PROFILE_PAGE_H
#define PROFILE_PAGE_H
#include "profile/summary.h"

struct page_told {
	const char *command; /* words, a blank between */
	const char *ending;  /* "exit code 0", "signal 9 (Killed)" */
	double wall_s;
	const char *note; /* lines on files that could not be read; "" */
};

void page_write(struct text *out, const struct summary *s, const struct timeline *t,
		const struct page_told *told);
/* One line a thing that is missing from the timeline, with what to do; nothing where it is whole. */
void page_missing(struct text *out, const struct timeline *t);
/* The few lines that a terminal shows. */
void page_brief(struct text *out, const struct summary *s, const struct timeline *t,
		const struct page_told *told);
#endif
