/* SPDX-License-Identifier: Apache-2.0 */
/* PROFILE.md and PROFILE.html: the findings of a profile for people, with advice, and with a list of data
 * that is missing and why. */
#ifndef PROFILE_PAGE_PAGE_H
#define PROFILE_PAGE_PAGE_H
#include "profile/findings/findings.h"

struct page {
	const struct findings *f;
	const char *command; /* words, separated by blanks */
	const char *ending;  /* "exit code 0", "signal 9 (Killed)" */
	double wall_s;
	bool trace;	  /* trace.json.gz lies in the same folder */
	const char *note; /* one line per file that could not be read; "" */
};

void page_markdown(struct text *out, const struct page *p);
/* A single file without external resources. Foreign text is escaped. */
void page_html(struct text *out, const struct page *p);
/* Appends one line per kind of data that is missing from the timeline, with what to do, then the lines of
 * `note`. Appends nothing if the timeline is complete. */
void page_missing(struct text *out, const struct timeline *t, const char *note);
/* The short summary for the terminal. */
void page_brief(struct text *out, const struct page *p);
#endif
