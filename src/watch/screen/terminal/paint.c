/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/screen/terminal/paint.h"
#include <curses.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

enum { STYLE_MAX = 96, ROOM_MIN = 4096, NO_ROLE = -1 };
#define NOWHERE UINT_MAX

static struct {
	char style[SCREEN_ROLE_COUNT][STYLE_MAX]; /* sequences that begin the role, also after another one */
	const char *move, *plain;		  /* capabilities; borrowed, plain "" if there is none */
	bool ansi;				  /* the cursor is moved as by ANSI X3.64 */
	bool scrolls;				  /* a character in the last cell scrolls the screen */
	unsigned x, y;				  /* where the cursor is; NOWHERE: not known */
	int role;				  /* of the character that was written last */
	char *frame;
	size_t size, room;
	bool failed;
} p = {.x = NOWHERE, .role = NO_ROLE};

/* Capabilities by name: <term.h> has macros for them that look like variables. */
static const char *capability(const char *name)
{
	const char *text = tigetstr((char *)name);

	return text && text != (char *)-1 ? text : "";
}

static int add(int c)
{
	if (p.size == p.room) {
		size_t room = p.room ? 2 * p.room : ROOM_MIN;
		char *more = realloc(p.frame, room);

		if (!more) {
			p.failed = true;
			return c;
		}
		p.frame = more;
		p.room = room;
	}
	p.frame[p.size++] = (char)c;
	return c;
}

/* tputs takes the padding out. */
static void add_sequence(const char *text)
{
	if (*text)
		tputs((char *)text, 1, add);
}

static void add_attributes(unsigned attribute)
{
	static const struct {
		unsigned bit;
		const char *name;
	} names[] = {{SCREEN_BOLD, "bold"},
		     {SCREEN_UNDERLINED, "smul"},
		     {SCREEN_REVERSED, "rev"},
		     {SCREEN_FAINT, "dim"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (attribute & names[i].bit)
			add_sequence(capability(names[i].name));
}

/* The number of a colour for this terminal; -1: its own. */
static int colour_of(enum screen_depth depth, int colour, int colours)
{
	if (depth == SCREEN_MONO)
		return -1;
	if (depth == SCREEN_16 && colour >= colours) /* eight colours: the dark one of the same hue */
		return colour == 8 ? 7 : colour - 8;
	if (depth == SCREEN_RGB && colour >= 0 && colour < 8) /* these would be colours of the palette */
		return 8;
	return colour;
}

void paint_prepare(enum screen_theme theme, enum screen_depth depth, int colours)
{
	const char *setaf = capability("setaf");

	p.move = capability("cup");
	p.ansi = !strcmp(p.move, "\033[%i%p1%d;%p2%dH");
	p.plain = capability("sgr0");
	p.scrolls = tigetflag("am") > 0 && tigetflag("xenl") <= 0;
	p.x = NOWHERE;
	p.role = NO_ROLE;
	for (int role = 0; role < SCREEN_ROLE_COUNT; role++) {
		struct screen_ink ink = screen_ink(theme, depth, role);
		int colour = colour_of(depth, ink.colour, colours);

		p.size = 0;
		add_sequence(p.plain);
		add_attributes(ink.attribute);
		if (colour >= 0 && *setaf)
			add_sequence(tparm((char *)setaf, (long)colour, 0L, 0L, 0L, 0L, 0L, 0L, 0L, 0L));
		p.size = p.size < STYLE_MAX ? p.size : 0;
		memcpy(p.style[role], p.frame ? p.frame : "", p.size);
		p.style[role][p.size] = '\0';
	}
	p.size = 0;
}

static void add_text(const char *text)
{
	for (; *text; text++)
		add((unsigned char)*text);
}

static void add_code(uint32_t code)
{
	if (code < 0x80) {
		add((int)code);
		return;
	}
	if (code < 0x800) {
		add((int)(0xc0 | code >> 6));
	} else if (code < 0x10000) {
		add((int)(0xe0 | code >> 12));
		add((int)(0x80 | (code >> 6 & 0x3f)));
	} else {
		add((int)(0xf0 | code >> 18));
		add((int)(0x80 | (code >> 12 & 0x3f)));
		add((int)(0x80 | (code >> 6 & 0x3f)));
	}
	add((int)(0x80 | (code & 0x3f)));
}

static void add_number(unsigned n)
{
	if (n >= 10)
		add_number(n / 10);
	add((int)('0' + n % 10));
}

/* Nearly all terminals move the cursor by the same sequence. tparm would take longer than all other work for
 * a cell. */
static void add_move(unsigned x, unsigned y)
{
	if (!p.ansi) {
		add_sequence(tparm((char *)p.move, (long)y, (long)x, 0L, 0L, 0L, 0L, 0L, 0L, 0L));
		return;
	}
	add_text("\033[");
	add_number(y + 1);
	add(';');
	add_number(x + 1);
	add('H');
}

void paint_cell(unsigned x, unsigned y, struct screen_cell c, unsigned width, unsigned height)
{
	if (!c.code || (p.scrolls && x + 1 == width && y + 1 == height))
		return;
	if (x != p.x || y != p.y)
		add_move(x, y);
	if ((int)c.role != p.role)
		add_text(p.style[c.role]);
	add_code(c.code);
	p.role = (int)c.role;
	p.y = y;
	/* Terminals differ in the width of characters that are not ASCII, and in what follows the last
	 * column. */
	p.x = c.code < 0x80 && x + 1 < width ? x + 1 : NOWHERE;
}

/* The terminal may be slow, and may not block. A signal ends it: the next frame is painted whole then, or the
 * program ends. */
static int write_all(const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(STDOUT_FILENO, data, size);
		struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

		if (n < 0 && errno != EAGAIN)
			return 1;
		if (n < 0 && poll(&out, 1, -1) < 0)
			return 1;
		data += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int paint_end(void)
{
	int failed;

	if (p.size) /* ncurses expects it so */
		add_sequence(p.plain);
	failed = p.failed || write_all(p.frame, p.size);
	p.size = 0;
	p.failed = false;
	p.x = NOWHERE;
	p.role = NO_ROLE;
	return failed;
}

void paint_release(void)
{
	free(p.frame);
	p.frame = NULL;
	p.size = p.room = 0;
}
