/* SPDX-License-Identifier: Apache-2.0 */
/* The module libassay-screen.so gives the program a terminal that shows cells and reads keys. The
 * program opens it with module_open (core/process/module.h), so only a machine that shows a screen needs
 * ncursesw. */
#ifndef WATCH_SCREEN_TERMINAL_MODULE_H
#define WATCH_SCREEN_TERMINAL_MODULE_H
#include "watch/screen/theme.h"
#include "watch/screen/view.h"

enum { SCREEN_MODULE_VERSION = 2 };
#define SCREEN_MODULE "assay-screen"
#define SCREEN_MODULE_SYMBOL "assay_screen_1"

struct screen_terminal {
	enum screen_depth depth; /* the most colours it can show */
	bool ascii;		 /* its locale is not UTF-8 */
};

/* All functions are called by one thread. */
struct screen_module {
	unsigned version;
	size_t size; /* of this struct */
	/* Takes the terminal over, which has to be stdin and stdout. Other than 0: it cannot, `message` says
	 * why, and the terminal is as before. */
	int (*open)(struct screen_terminal *t, char *message, size_t size);
	/* Gives the terminal back as it was. Does nothing if it is not open. */
	void (*close)(void);
	void (*current_size)(unsigned *columns, unsigned *rows);
	/* Shows the cells. Sends only what has changed since the last call. */
	void (*show)(const struct screen *s, enum screen_theme theme, enum screen_depth depth);
	/* The next key that is there; SCREEN_KEY_NONE: none. Never waits. */
	struct screen_event (*key)(void);
};
#endif
