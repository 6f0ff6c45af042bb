/* SPDX-License-Identifier: Apache-2.0 */
/* Forced into every C file: the headers first, then the unbounded names they declare. */
#ifndef CORE_BANNED_H
#define CORE_BANNED_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok
#pragma GCC poison atoi atol atof gets
#endif
