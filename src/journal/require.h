/* SPDX-License-Identifier: Apache-2.0 */
/* What exit code 0 asks of a case, as suites, plans and reports word it. */
#ifndef JOURNAL_REQUIRE_H
#define JOURNAL_REQUIRE_H

/* KNOWN: judged where a reference for it is known, else measured. A plan's hash holds the number: new words
 * go to the end. */
#define REQUIRES(X) X(JUDGED, "judged") X(MEASURED, "measured") X(NOTHING, "nothing") X(KNOWN, "known")
#define X(name, word) REQUIRE_##name,
enum require { REQUIRES(X) };
#undef X

extern const char *const require_words[]; /* by enum require, then NULL */
/* JUDGED for what is none of the words, or NULL. */
enum require require_from_word(const char *word);
#endif
