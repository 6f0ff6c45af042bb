/* SPDX-License-Identifier: Apache-2.0 */
#include "run/isolate/search_two.h"

/* Share by which one is below the other; *slow: which. 0: alike, or not both are known. */
static double below(const struct follow_two_row *row, int *slow)
{
	double loss;

	*slow = row->of[0] < row->of[1] ? 0 : 1;
	if (!(row->of[0] > 0) || !(row->of[1] > 0))
		return 0;
	loss = 1 - row->of[*slow] / row->of[!*slow];
	return loss > FOLLOW_TWO_LEAST ? loss : 0;
}

static void take(struct follow_two *out, enum follow_kind kind, int a, const struct follow_two_row *row,
		 double loss)
{
	*out = (struct follow_two){
		.found = kind, .a = a, .b = kind == FOLLOW_PAIR ? !a : -1, .shows = row, .loss = loss};
}

static bool take_wrong(struct follow_two *out, const struct follow_two_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].wrong[0] != rows[i].wrong[1]) {
			take(out, rows[i].link ? FOLLOW_PAIR : FOLLOW_MEMBER, rows[i].wrong[0] ? 0 : 1,
			     &rows[i], 1);
			return true;
		}
	return false;
}

/* By itself the one did not end within its limit what the other did. */
static bool take_late(struct follow_two *out, const struct follow_two_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int a = 0; a < 2; a++)
			if (rows[i].alone && rows[i].late[a] && rows[i].of[!a] > 0) {
				take(out, FOLLOW_MEMBER, a, &rows[i], 1);
				return true;
			}
	return false;
}

/* The row of this kind that shows most; none where rows contradict each other. */
static bool take_slow(struct follow_two *out, const struct follow_two_row *rows, size_t count, bool link,
		      bool alone)
{
	const struct follow_two_row *shows = NULL;
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
		take(out, link ? FOLLOW_PAIR : FOLLOW_MEMBER, who, shows, most);
	return shows;
}

void follow_two(struct follow_two *out, const struct follow_two_row *rows, size_t count)
{
	*out = (struct follow_two){.found = FOLLOW_NOBODY, .a = -1, .b = -1};
	if (!take_wrong(out, rows, count) && !take_late(out, rows, count) &&
	    !take_slow(out, rows, count, false, true) && !take_slow(out, rows, count, true, false))
		take_slow(out, rows, count, false, false);
}
