/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a terminal recording into an animated SVG: one element for each line, which appears at its time, and
 * a group that scrolls. CSS does the animation; there is no script and no font inside. SPEED divides the
 * times of the recording, and each new line adds the time to read it. The same recording gives the same
 * bytes.
 *
 * A recording is made by script(1), from util-linux:
 *   script -q --log-out demo.typescript --log-timing demo.timing -c "assay demo quick"
 * The program understands what assay prints: lines, carriage return, ESC [ K, and colours.
 *
 * usage: recording_svg TYPESCRIPT TIMING [SPEED] > FILE.svg
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "core/text/utf8.h"

enum { COLUMNS = 100, ROWS = 30, LINES_MOST = 2000, VERSIONS_MOST = 4000, FILE_MOST = 16 << 20 };
enum { LINE_PX = 18, CHAR_PX = 8, MARGIN_PX = 14, BAR_PX = 30 };
/* In seconds of the recording: a longer pause is cut to this. */
static const double pause_most_s = 1;
/* In seconds of the picture: a line shows at most one version in this time; the time to read a new line; how
 * long the last frame stays. */
static const double version_least_s = 0.35, read_line_s = 0.12, hold_s = 6;

/* The looks that assay uses; each has a class. */
enum style {
	STYLE_PLAIN,
	STYLE_BOLD,
	STYLE_FAINT,
	STYLE_RED,
	STYLE_GREEN,
	STYLE_YELLOW,
	STYLE_CYAN,
	STYLE_COUNT
};
static const char *const classes[STYLE_COUNT] = {"", "b", "f", "r", "g", "y", "c"};

struct cell {
	char letter[5]; /* "": nothing was written */
	enum style style;
};

struct line {
	struct cell cell[COLUMNS];
	bool changed;
	size_t version; /* its latest one, from 1; 0: none yet */
};

/* What a line showed from one time to another. */
struct version {
	size_t line;
	double from, to; /* to: below 0: to the end */
	struct text svg;
};

struct screen {
	struct line *line;
	size_t count, column; /* the cursor is on the last line */
	enum style style;
	struct version version[VERSIONS_MOST];
	size_t versions;
	double scrolled_at[LINES_MOST]; /* when the line appeared */
	double now;			/* in seconds of the picture */
};

static _Noreturn void fail(const char *what, const char *which)
{
	fprintf(stderr, "recording_svg: %s%s\n", what, which);
	exit(2);
}

/* -- the terminal -- */

static struct line *last_line(struct screen *s)
{
	return &s->line[s->count - 1];
}

static void new_line(struct screen *s)
{
	if (s->count == LINES_MOST)
		fail("the recording has too many lines", "");
	s->scrolled_at[s->count++] = s->now;
	s->column = 0;
}

static void put(struct screen *s, const char *letter, size_t size)
{
	struct cell *c;

	if (s->column == COLUMNS)
		new_line(s);
	c = &last_line(s)->cell[s->column++];
	memcpy(c->letter, letter, size);
	c->letter[size] = '\0';
	c->style = s->style;
	last_line(s)->changed = true;
}

/* "1;32": the last number that names a look wins; 0 ends it. */
static void set_style(struct screen *s, const char *codes)
{
	static const struct {
		int code;
		enum style style;
	} known[] = {{0, STYLE_PLAIN},	{1, STYLE_BOLD},    {2, STYLE_FAINT}, {31, STYLE_RED},
		     {32, STYLE_GREEN}, {33, STYLE_YELLOW}, {36, STYLE_CYAN}};

	if (*codes == 'm')
		s->style = STYLE_PLAIN;
	while (*codes >= '0' && *codes <= '9') {
		const int code = (int)strtol(codes, (char **)&codes, 10);

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (known[i].code == code)
				s->style = known[i].style;
		codes += *codes == ';';
	}
}

/* Handles "ESC [ .. X"; returns its size, `size` if it is cut, 1 for another sequence. */
static size_t escape(struct screen *s, const char *at, size_t size)
{
	size_t n = 2;

	if (size > 1 && at[1] != '[')
		return 1;
	while (n < size && (unsigned char)at[n] < '@')
		n++;
	if (n >= size)
		return size;
	if (at[n] == 'm') {
		set_style(s, at + 2);
	} else if (at[n] == 'K') {
		memset(&last_line(s)->cell[s->column], 0, (COLUMNS - s->column) * sizeof(struct cell));
		last_line(s)->changed = true;
	}
	return n + 1;
}

/* Takes the bytes from `at` on, and the rest of a letter or a sequence that goes beyond `end`. Returns where
 * the next ones begin. The text has `size` bytes and a NUL. */
static size_t take(struct screen *s, const char *text, size_t size, size_t at, size_t end)
{
	while (at < end) {
		size_t n = 1;

		if (text[at] == '\033') {
			n = escape(s, text + at, size - at);
		} else if (text[at] == '\n') {
			new_line(s);
		} else if (text[at] == '\r') {
			s->column = 0;
		} else if (!utf8_is_control(utf8_decode(text + at, &n))) {
			put(s, text + at, n < 5 ? n : 4);
		}
		at += n ? n : 1;
	}
	return at;
}

/* -- versions of lines -- */

static void end_span(struct text *out, enum style style)
{
	text_add(out, style == STYLE_PLAIN ? "" : "</tspan>");
}

/* One text element; nothing for an empty line. Spaces at the ends are left out. */
static void line_svg(struct text *out, const struct line *l, size_t number)
{
	enum style style = STYLE_PLAIN;
	size_t first = 0, end = COLUMNS;

	while (end > 0 && (!*l->cell[end - 1].letter || l->cell[end - 1].letter[0] == ' '))
		end--;
	while (first < end && (!*l->cell[first].letter || l->cell[first].letter[0] == ' '))
		first++;
	if (first == end)
		return;
	text_addf(out, "<text x=\"%zu\" y=\"%zu\">", first * CHAR_PX, (number + 1) * LINE_PX - 5);
	for (size_t i = first; i < end; i++) {
		const struct cell *c = &l->cell[i];

		if (c->style != style) {
			end_span(out, style);
			style = c->style;
			if (style != STYLE_PLAIN)
				text_addf(out, "<tspan class=\"%s\">", classes[style]);
		}
		text_add_html(out, *c->letter ? c->letter : " ");
	}
	end_span(out, style);
	text_add(out, "</text>");
}

/* Keeps what a changed line shows now. A version that was seen too briefly is replaced. */
static void keep(struct screen *s, size_t number)
{
	struct line *l = &s->line[number];
	struct version *old = l->version ? &s->version[l->version - 1] : NULL;
	struct text svg = {0};

	l->changed = false;
	line_svg(&svg, l, number);
	if (old && !strcmp(text_str(&old->svg), text_str(&svg))) {
		text_release(&svg);
		return;
	}
	if (old && s->now - old->from < version_least_s) {
		text_release(&old->svg);
		old->svg = svg;
		return;
	}
	if (old)
		old->to = s->now;
	if (s->versions == VERSIONS_MOST)
		fail("the recording has too many changes", "");
	s->version[s->versions++] = (struct version){.line = number, .from = s->now, .to = -1, .svg = svg};
	l->version = s->versions;
}

static void keep_all(struct screen *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->line[i].changed)
			keep(s, i);
}

/* -- the recording -- */

static void read_one(char **text, size_t *size, const char *path)
{
	struct error err = {0};

	if (file_read(text, size, path, FILE_MOST, &err))
		fail(err.text, "");
}

/* Plays "DELAY BYTES" lines; also "O DELAY BYTES", the newer form. */
static void play(struct screen *s, const char *text, size_t size, char *timing, double speed)
{
	const char *header = strncmp(text, "Script started", 14) ? NULL : strchr(text, '\n');
	size_t at = header ? (size_t)(header - text) + 1 : 0, end = at;
	char *rest = timing;

	for (char *line; (line = strsep(&rest, "\n"));) {
		const size_t before = s->count;
		double delay;
		size_t bytes;

		if (!*line || *line == 'H' || *line == 'S')
			continue;
		if (sscanf(line + 2 * (*line == 'O'), "%lf %zu", &delay, &bytes) != 2 || !(delay >= 0))
			fail("the timing has a line that is none: ", line);
		if (bytes > size - end)
			fail("the timing has more bytes than the recording", "");
		s->now += (delay < pause_most_s ? delay : pause_most_s) / speed;
		end += bytes;
		at = take(s, text, size, at, end);
		keep_all(s);
		s->now += read_line_s * (double)(s->count - before);
	}
}

/* -- the picture -- */

static const char style_sheet[] =
	"text{white-space:pre;fill:#e6e8eb}.b{font-weight:700}.f{fill:#9aa3ad}.r{fill:#ff8a80;font-weight:700}"
	".g{fill:#5cc783;font-weight:700}.y{fill:#e5b454;font-weight:700}.c{fill:#7db8f3}"
	"@media (prefers-reduced-motion:reduce){*{animation:none!important}}\n";

static double percent(double t, double all)
{
	return 100 * t / all;
}

/* The scrolling of the group: one key frame for each time at which it moves. */
static void add_scroll(struct text *out, const struct screen *s, double all)
{
	size_t top = s->count > ROWS ? s->count - ROWS : 0;

	text_add(out, "@keyframes s{0%{transform:translateY(0)}");
	for (size_t i = ROWS; i < s->count; i++)
		if (i + 1 == s->count || s->scrolled_at[i + 1] > s->scrolled_at[i])
			text_addf(out, "%.2f%%{transform:translateY(-%zupx)}",
				  percent(s->scrolled_at[i], all), (i + 1 - ROWS) * LINE_PX);
	text_addf(out, "}.s{transform:translateY(-%zupx);animation:s %.2fs step-end infinite}\n",
		  top * LINE_PX, all);
}

static bool is_shown(const struct version *v)
{
	return v->svg.size > 0;
}

static bool same_time(const struct version *a, const struct version *b)
{
	return a->from == b->from && a->to == b->to;
}

/* Versions with the same times follow each other in one group. */
static void add_lines(struct text *css, struct text *body, const struct screen *s, double all)
{
	unsigned group = 0;

	for (size_t i = 0; i < s->versions;) {
		const struct version *v = &s->version[i];

		if (!is_shown(v)) {
			i++;
			continue;
		}
		text_addf(css, "@keyframes k%u{0%%{opacity:0}%.2f%%{opacity:1}", group,
			  percent(v->from, all));
		if (v->to >= 0)
			text_addf(css, "%.2f%%{opacity:0}", percent(v->to, all));
		text_addf(css, "}.k%u{animation:k%u %.2fs step-end infinite%s}\n", group, group, all,
			  v->to >= 0 ? ";opacity:0" : "");
		text_addf(body, "<g class=\"k%u\">", group++);
		for (; i < s->versions && (!is_shown(&s->version[i]) || same_time(&s->version[i], v)); i++)
			text_add(body, text_str(&s->version[i].svg));
		text_add(body, "</g>\n");
	}
}

static void write_svg(const struct screen *s)
{
	const double all = s->now + hold_s;
	const int width = COLUMNS * CHAR_PX + 2 * MARGIN_PX, height = ROWS * LINE_PX + BAR_PX + MARGIN_PX;
	struct text css = {0}, body = {0};

	add_scroll(&css, s, all);
	add_lines(&css, &body, s, all);
	printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
	       "font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" "
	       "font-size=\"13.3\" xml:space=\"preserve\" role=\"img\">\n<title>a recorded run of assay demo quick</title>\n"
	       "<style>%s%s</style>\n",
	       width, height, width, height, style_sheet, text_str(&css));
	printf("<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#14171c\"/>\n", width, height);
	for (int i = 0; i < 3; i++)
		printf("<circle cx=\"%d\" cy=\"15\" r=\"5\" fill=\"#3a424d\"/>\n", 18 + 18 * i);
	printf("<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><g class=\"s\">\n%s</g></svg>\n</svg>\n",
	       MARGIN_PX, BAR_PX, COLUMNS * CHAR_PX + MARGIN_PX, ROWS * LINE_PX, text_str(&body));
	text_release(&css);
	text_release(&body);
}

int main(int argc, char **argv)
{
	const double speed = argc > 3 ? strtod(argv[3], NULL) : 1;
	struct screen *s = calloc(1, sizeof(*s));
	char *text, *timing;
	size_t size, timing_size;

	if (argc < 3 || argc > 4 || !(speed > 0) || speed > 100)
		fail("usage: recording_svg TYPESCRIPT TIMING [SPEED]", "");
	if (!s || !(s->line = calloc(LINES_MOST, sizeof(*s->line))))
		fail("no memory", "");
	read_one(&text, &size, argv[1]);
	read_one(&timing, &timing_size, argv[2]);
	new_line(s);
	play(s, text, size, timing, speed);
	write_svg(s);
	for (size_t i = 0; i < s->versions; i++)
		text_release(&s->version[i].svg);
	free(s->line);
	free(s);
	free(text);
	free(timing);
	return fflush(stdout) ? 2 : 0;
}
