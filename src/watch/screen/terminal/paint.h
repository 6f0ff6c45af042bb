/* SPDX-License-Identifier: Apache-2.0 */
/* Writes cells to the terminal, with the sequences of its terminfo and one write() per frame. ncurses does
 * one for each motion of the cursor, which costs more than everything else that a frame needs. A part of the
 * module. */
#ifndef WATCH_SCREEN_TERMINAL_PAINT_H
#define WATCH_SCREEN_TERMINAL_PAINT_H
#include "watch/screen/theme.h"

/* Prepares the sequences of all roles. `colours`: how many the terminal has. */
void paint_prepare(enum screen_theme theme, enum screen_depth depth, int colours);
/* Adds a character to the frame, at column x of row y. A terminal that would scroll at its last cell does not
 * get that one; `width` and `height` are its size. */
void paint_cell(unsigned x, unsigned y, struct screen_cell c, unsigned width, unsigned height);
/* Writes the frame. Other than 0: it is lost, because there is no memory or the terminal is gone. */
int paint_end(void);
void paint_release(void);
#endif
