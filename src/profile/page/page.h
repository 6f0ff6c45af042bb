/* SPDX-License-Identifier: Apache-2.0 */
/* PROFILE.md and PROFILE.html: what a profile found, for people; what would buy time; and what is missing,
 * with the reason. */
#ifndef PROFILE_PAGE_PAGE_H
#define PROFILE_PAGE_PAGE_H
#include "profile/findings/findings.h"

struct page {
	const struct findings *f;
	const char *command; /* words, a blank between */
	const char *ending;  /* "exit code 0", "signal 9 (Killed)" */
	double wall_s;
	bool trace;	  /* trace.json.gz is written beside it */
	const char *note; /* lines on files that could not be read; "" */
};

void page_markdown(struct text *out, const struct page *p);
/* One file that asks for nothing from elsewhere; foreign text is escaped. */
void page_html(struct text *out, const struct page *p);
/* One line a thing that is missing from the timeline, with what to do, then those of `note`; nothing where it
 * is whole. */
void page_missing(struct text *out, const struct timeline *t, const char *note);
/* The few lines that a terminal shows. */
void page_brief(struct text *out, const struct page *p);
#endif
