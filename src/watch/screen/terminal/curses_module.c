/* SPDX-License-Identifier: Apache-2.0 */
/* The module libassay-screen.so: shows cells, and reads keys, mouse and size through ncursesw. It gives the
 * terminal back at the end, and also when this program crashes. */
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>
#include "watch/screen/terminal/module.h"
#include "watch/screen/terminal/paint.h"
#include "watch/screen/terminal/terminal_type.h"

enum { ESCAPE_MS = 25, END_MAX = 256 };

/* The signals that end a process by default. The first FAULTS are always caught. The others are caught if
 * nobody handles or ignores them. */
enum { FAULTS = 5 };
static const int crashes[] = {SIGSEGV, SIGBUS,	SIGILL,	   SIGFPE,    SIGABRT, SIGTRAP, SIGSYS,
			      SIGXCPU, SIGXFSZ, SIGALRM,   SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2,
			      SIGIO,   SIGPWR,	SIGSTKFLT, SIGQUIT,   SIGPIPE};

static struct {
	SCREEN *screen;
	bool open;
	enum screen_depth depth; /* for which the painter is prepared */
	int theme;		 /* likewise; -1: not at all */
	struct termios before;
	char end[END_MAX]; /* sequences that end the screen, for a crash */
	size_t end_size;
	struct sigaction earlier[sizeof(crashes) / sizeof(crashes[0])];
	struct screen_cell *shown; /* the cells that the terminal shows; NULL: not known, so it is cleared */
	unsigned shown_columns, shown_rows;
	volatile sig_atomic_t resumed;
	struct sigaction continued; /* the action of SIGCONT before */
} t = {.theme = -1};

/* Only what a signal handler may do. */
static void on_crash(int sig)
{
	if (t.open) {
		ssize_t n = write(STDOUT_FILENO, t.end, t.end_size);

		(void)n;
		tcsetattr(STDIN_FILENO, TCSANOW, &t.before);
	}
	signal(sig, SIG_DFL); /* another handler may have called this one, so SA_RESETHAND is not enough */
	raise(sig);
}

/* This program was stopped and goes on: ncurses has cleared the terminal. */
static void on_continue(int sig)
{
	(void)sig;
	t.resumed = 1;
}

static void catch_crashes(void)
{
	const struct sigaction action = {.sa_handler = on_crash};

	t.end_size = terminal_type_end(t.end, sizeof(t.end));
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		if (!sigaction(crashes[i], NULL, &t.earlier[i]) &&
		    (i < FAULTS || t.earlier[i].sa_handler == SIG_DFL))
			sigaction(crashes[i], &action, NULL);
}

/* A handler that was installed since stays. */
static void leave_crashes(void)
{
	struct sigaction now;

	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		if (!sigaction(crashes[i], NULL, &now) && !(now.sa_flags & SA_SIGINFO) &&
		    now.sa_handler == on_crash)
			sigaction(crashes[i], &t.earlier[i], NULL);
}

static enum screen_depth depth_of(bool direct)
{
	if (!has_colors() || start_color() != OK)
		return SCREEN_MONO;
	use_default_colors();
	if (direct)
		return SCREEN_RGB;
	return COLORS >= 256 ? SCREEN_256 : COLORS >= 8 ? SCREEN_16 : SCREEN_MONO;
}

static int open_terminal(struct screen_terminal *out, char *message, size_t size)
{
	const char *type = getenv("TERM");
	char name[64];
	bool direct;

	out->ascii = !setlocale(LC_ALL, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	setlocale(LC_NUMERIC, "C");
	if (!type || !*type || !terminal_type_known(type)) {
		snprintf(message, size, "the terminal type TERM=%.40s is not known here", type ? type : "");
		return 1;
	}
	if (tcgetattr(STDIN_FILENO, &t.before)) {
		snprintf(message, size, "stdin is not a terminal");
		return 1;
	}
	t.screen = newterm(terminal_type_best(type, name, sizeof(name), &direct), stdout, stdin);
	if (!t.screen) {
		snprintf(message, size, "the terminal TERM=%.40s cannot show a screen", type);
		return 1;
	}
	t.open = true;
	t.theme = -1;
	catch_crashes();
	sigaction(SIGCONT, &(struct sigaction){.sa_handler = on_continue}, &t.continued);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	mouseinterval(0);
	mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED | BUTTON4_PRESSED |
			  BUTTON5_PRESSED,
		  NULL);
	out->depth = t.depth = depth_of(direct);
	return 0;
}

static void forget_shown(void)
{
	free(t.shown);
	t.shown = NULL;
}

static void close_terminal(void)
{
	if (!t.open)
		return;
	t.open = false;
	forget_shown();
	paint_release();
	endwin();
	delscreen(t.screen);
	t.screen = NULL;
	leave_crashes();
	sigaction(SIGCONT, &t.continued, NULL);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &t.before);
}

static void current_size(unsigned *columns, unsigned *rows)
{
	*columns = COLS > 0 ? (unsigned)COLS : 0;
	*rows = LINES > 0 ? (unsigned)LINES : 0;
}

static bool same_cell(const struct screen_cell *a, const struct screen_cell *b)
{
	return a->code == b->code && a->role == b->role;
}

/* The cells of a terminal that was cleared. Without memory, the next call clears it again and writes all
 * cells. */
static void keep_blank(const struct screen *s)
{
	size_t count = (size_t)s->columns * s->rows;

	t.shown = malloc(count * sizeof(*t.shown));
	for (size_t i = 0; t.shown && i < count; i++)
		t.shown[i] = (struct screen_cell){' ', SCREEN_ROLE_TEXT};
	t.shown_columns = s->columns;
	t.shown_rows = s->rows;
}

static void show_row(const struct screen *s, unsigned y)
{
	static const struct screen_cell blank = {' ', SCREEN_ROLE_TEXT};
	const struct screen_cell *row = &s->cell[(size_t)y * s->columns];
	struct screen_cell *before = t.shown ? &t.shown[(size_t)y * s->columns] : NULL;
	size_t size = s->columns * sizeof(*row);

	if (before && !memcmp(row, before, size))
		return;
	for (unsigned x = 0; x < s->columns && x < (unsigned)COLS; x++)
		if (!same_cell(&row[x], before ? &before[x] : &blank))
			paint_cell(x, y, row[x], (unsigned)COLS, (unsigned)LINES);
	if (before)
		memcpy(before, row, size);
}

/* ncurses has a blank screen at all times: it clears the terminal and restores it, but does not draw. */
static void show(const struct screen *s, enum screen_theme theme, enum screen_depth depth)
{
	if (!t.open)
		return;
	if (t.theme != (int)theme || t.depth != depth || s->columns != t.shown_columns ||
	    s->rows != t.shown_rows)
		forget_shown();
	if (t.theme != (int)theme || t.depth != depth)
		paint_prepare(theme, depth, COLORS);
	t.theme = theme;
	t.depth = depth;
	if (!t.shown) {
		clearok(stdscr, TRUE);
		refresh();
		keep_blank(s);
	}
	for (unsigned y = 0; y < s->rows && y < (unsigned)LINES; y++)
		show_row(s, y);
	if (paint_end())
		forget_shown();
}

static struct screen_event mouse(void)
{
	MEVENT m;
	struct screen_event e = {SCREEN_KEY_NONE, 0, 0};

	if (getmouse(&m) != OK || m.x < 0 || m.y < 0)
		return e;
	e.x = (unsigned)m.x;
	e.y = (unsigned)m.y;
	if (m.bstate & BUTTON1_DOUBLE_CLICKED)
		e.key = SCREEN_KEY_DOUBLE_CLICK;
	else if (m.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED))
		e.key = SCREEN_KEY_CLICK;
	else if (m.bstate & BUTTON4_PRESSED)
		e.key = SCREEN_KEY_UP;
	else if (m.bstate & BUTTON5_PRESSED)
		e.key = SCREEN_KEY_DOWN;
	return e;
}

static struct screen_event key(void)
{
	static const struct {
		int curses;
		uint32_t key;
	} map[] = {{KEY_UP, SCREEN_KEY_UP},	    {KEY_DOWN, SCREEN_KEY_DOWN},
		   {KEY_LEFT, SCREEN_KEY_LEFT},	    {KEY_RIGHT, SCREEN_KEY_RIGHT},
		   {KEY_PPAGE, SCREEN_KEY_PAGE_UP}, {KEY_NPAGE, SCREEN_KEY_PAGE_DOWN},
		   {KEY_HOME, SCREEN_KEY_HOME},	    {KEY_END, SCREEN_KEY_END},
		   {KEY_ENTER, SCREEN_KEY_ENTER},   {KEY_BACKSPACE, SCREEN_KEY_BACKSPACE},
		   {KEY_RESIZE, SCREEN_KEY_RESIZE}};
	wint_t code;
	int kind;

	if (t.open && t.resumed) {
		t.resumed = 0;
		forget_shown();
		return (struct screen_event){SCREEN_KEY_RESIZE, 0, 0};
	}
	kind = t.open ? get_wch(&code) : ERR;

	if (kind == ERR)
		return (struct screen_event){SCREEN_KEY_NONE, 0, 0};
	if (kind == KEY_CODE_YES && code == KEY_RESIZE)
		forget_shown(); /* the terminal has moved or cut its cells */
	if (kind != KEY_CODE_YES)
		return (struct screen_event){(uint32_t)code, 0, 0};
	if (code == KEY_MOUSE)
		return mouse();
	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if ((wint_t)map[i].curses == code)
			return (struct screen_event){map[i].key, 0, 0};
	return (struct screen_event){SCREEN_KEY_RESIZE, 0, 0}; /* a key without a meaning: draw again */
}

extern const struct screen_module assay_screen_1;
__attribute__((visibility("default"))) const struct screen_module assay_screen_1 = {
	.version = SCREEN_MODULE_VERSION,
	.size = sizeof(struct screen_module),
	.open = open_terminal,
	.close = close_terminal,
	.current_size = current_size,
	.show = show,
	.key = key,
};
