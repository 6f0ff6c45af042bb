/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of terminals, as terminfo has them. A part of the module: <term.h> defines words such as
 * `lines` as macros, so only terminal_type.c includes it. */
#ifndef WATCH_SCREEN_TERMINAL_TERMINAL_TYPE_H
#define WATCH_SCREEN_TERMINAL_TERMINAL_TYPE_H
#include <stdbool.h>
#include <stddef.h>

/* True if terminfo knows the type. */
bool terminal_type_known(const char *type);
/* The type to use: one with direct colours if COLORTERM says that the terminal has them and such a
 * description is installed (*direct is then true), else `type` itself. `out` holds the name. */
const char *terminal_type_best(const char *type, char *out, size_t size, bool *direct);
/* Copies what gives the screen back to the terminal that is open, for a crash. Returns its bytes. */
size_t terminal_type_end(char *out, size_t size);
#endif
