/* SPDX-License-Identifier: Apache-2.0 */
/* The build includes this header in every C file. It forbids libc functions without a bound (strcpy,
 * sprintf, atoi, ..). The libc headers come first, because they declare these names. */
#ifndef CORE_BANNED_H
#define CORE_BANNED_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok
#pragma GCC poison atoi atol atof gets
#endif
