/* SPDX-License-Identifier: Apache-2.0 */
/* What a case must reach for exit code 0, in the words of suites, plans and reports. */
#ifndef JOURNAL_REQUIRE_H
#define JOURNAL_REQUIRE_H

/* KNOWN: judged if a reference for it is known, else measured. Add new words at the end, because a plan's
 * hash contains the number. */
#define REQUIRES(X) X(JUDGED, "judged") X(MEASURED, "measured") X(NOTHING, "nothing") X(KNOWN, "known")
#define X(name, word) REQUIRE_##name,
enum require { REQUIRES(X) };
#undef X

extern const char *const require_words[]; /* indexed by enum require; ends with NULL */
/* JUDGED for NULL or an unknown word. */
enum require require_from_word(const char *word);
#endif
