/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/screen/terminal/terminal_type.h"
#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

bool terminal_type_known(const char *type)
{
	TERMINAL *before = cur_term;
	int status;
	bool known = setupterm((char *)type, STDOUT_FILENO, &status) == OK;

	if (known)
		del_curterm(cur_term);
	set_curterm(before);
	return known;
}

const char *terminal_type_best(const char *type, char *out, size_t size, bool *direct)
{
	const char *said = getenv("COLORTERM");

	*direct = false;
	if (!said || (strcmp(said, "truecolor") != 0 && strcmp(said, "24bit") != 0))
		return type;
	snprintf(out, size, "%.*s-direct", (int)strcspn(type, "-"), type);
	*direct = terminal_type_known(out);
	return *direct ? out : type;
}

size_t terminal_type_end(char *out, size_t size)
{
	static const char *const names[] = {"sgr0", "cnorm", "rmkx", "rmcup"};
	size_t used = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = tigetstr((char *)names[i]);
		size_t length = text && text != (char *)-1 ? strlen(text) : 0;

		if (used + length > size)
			break;
		memcpy(out + used, text ? text : "", length);
		used += length;
	}
	return used;
}
