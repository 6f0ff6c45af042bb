/* SPDX-License-Identifier: Apache-2.0 */
/* What every suite includes first: cmocka and the headers that it wants before itself. */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#endif
