/* SPDX-License-Identifier: Apache-2.0 */
#include "run/isolate/search_two.h"

/* Share by which the slower member is below the faster one; *slow: the slower one. 0: they are alike, or a
 * rate is unknown. */
static double below(const struct isolate_search_two_row *row, int *slow)
{
	double loss;

	*slow = row->of[0] < row->of[1] ? 0 : 1;
	if (!(row->of[0] > 0) || !(row->of[1] > 0))
		return 0;
	loss = 1 - row->of[*slow] / row->of[!*slow];
	return loss > ISOLATE_SEARCH_TWO_LEAST ? loss : 0;
}

static void take(struct isolate_search_two *out, enum isolate_search_kind kind, int a,
		 const struct isolate_search_two_row *row, double loss)
{
	*out = (struct isolate_search_two){.found = kind,
					   .a = a,
					   .b = kind == ISOLATE_SEARCH_PAIR ? !a : -1,
					   .shows = row,
					   .loss = loss};
}

static bool take_wrong(struct isolate_search_two *out, const struct isolate_search_two_row *rows,
		       size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].wrong[0] != rows[i].wrong[1]) {
			take(out, rows[i].link ? ISOLATE_SEARCH_PAIR : ISOLATE_SEARCH_MEMBER,
			     rows[i].wrong[0] ? 0 : 1, &rows[i], 1);
			return true;
		}
	return false;
}

/* One member did not end its own work within the limit, and the other did. */
static bool take_late(struct isolate_search_two *out, const struct isolate_search_two_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int a = 0; a < 2; a++)
			if (rows[i].alone && rows[i].late[a] && rows[i].of[!a] > 0) {
				take(out, ISOLATE_SEARCH_MEMBER, a, &rows[i], 1);
				return true;
			}
	return false;
}

/* Takes the row of this kind with the largest loss. False: no row shows a loss, or two rows contradict each
 * other. */
static bool take_slow(struct isolate_search_two *out, const struct isolate_search_two_row *rows, size_t count,
		      bool link, bool alone)
{
	const struct isolate_search_two_row *shows = NULL;
	double most = 0;
	int who = 0, slow = 0;

	for (size_t i = 0; i < count; i++) {
		double loss = rows[i].link == link && rows[i].alone == alone ? below(&rows[i], &slow) : 0;

		if (loss > 0 && shows && slow != who)
			return false;
		if (loss > most) {
			most = loss;
			who = slow;
			shows = &rows[i];
		}
	}
	if (shows)
		take(out, link ? ISOLATE_SEARCH_PAIR : ISOLATE_SEARCH_MEMBER, who, shows, most);
	return shows;
}

void isolate_search_two(struct isolate_search_two *out, const struct isolate_search_two_row *rows,
			size_t count)
{
	*out = (struct isolate_search_two){.found = ISOLATE_SEARCH_NOBODY, .a = -1, .b = -1};
	if (!take_wrong(out, rows, count) && !take_late(out, rows, count) &&
	    !take_slow(out, rows, count, false, true) && !take_slow(out, rows, count, true, false))
		take_slow(out, rows, count, false, false);
}
