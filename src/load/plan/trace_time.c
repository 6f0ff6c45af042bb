/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/trace.h"

/* Reads exactly `digits` digits and moves on. -1: it has fewer. */
static int number(const char **text, int digits)
{
	int value = 0;

	for (int i = 0; i < digits; i++) {
		char c = **text;

		if (c < '0' || c > '9')
			return -1;
		value = value * 10 + (c - '0');
		++*text;
	}
	return value;
}

static bool take(const char **text, char c)
{
	if (**text != c)
		return false;
	++*text;
	return true;
}

static int days_of_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

static int64_t days_since_1970(int year, int month, int day)
{
	int64_t days = day - 1;

	for (int y = 1970; y < year; y++)
		days += 337 + days_of_month(y, 2);
	for (int m = 1; m < month; m++)
		days += days_of_month(year, m);
	return days;
}

/* Digits after the point; those beyond nanoseconds are dropped. */
static int64_t fraction(const char **text)
{
	int64_t ns = 0, unit = 100000000;

	for (; **text >= '0' && **text <= '9'; ++*text, unit /= 10)
		ns += (**text - '0') * unit;
	return ns;
}

/* Seconds east of Greenwich: "Z", "+01:00" or nothing. */
static bool zone(const char **text, int64_t *seconds)
{
	bool east = take(text, '+');
	int hours, minutes;

	*seconds = 0;
	if (!east && !take(text, '-')) {
		take(text, 'Z');
		return true;
	}
	hours = number(text, 2);
	minutes = take(text, ':') ? number(text, 2) : -1;
	*seconds = (east ? 60 : -60) * (hours * 60 + minutes);
	return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

static bool date(const char **text, int64_t *days)
{
	int year = number(text, 4), month, day;

	month = take(text, '-') ? number(text, 2) : -1;
	day = take(text, '-') ? number(text, 2) : -1;
	if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 ||
	    day > days_of_month(year, month))
		return false;
	*days = days_since_1970(year, month, day);
	return true;
}

bool trace_time_read(int64_t *ns, const char *text)
{
	int64_t days, east;
	int hour, minute, second;

	if (!date(&text, &days) || !(take(&text, ' ') || take(&text, 'T')))
		return false;
	hour = number(&text, 2);
	minute = take(&text, ':') ? number(&text, 2) : -1;
	second = take(&text, ':') ? number(&text, 2) : -1;
	if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
		return false;
	*ns = take(&text, '.') ? fraction(&text) : 0;
	if (!zone(&text, &east) || *text)
		return false;
	*ns += (days * 86400 + hour * 3600 + minute * 60 + second - east) * 1000000000;
	return true;
}
