/* SPDX-License-Identifier: Apache-2.0 */
/* A library that never comes out of its constructor. */
#include <unistd.h>

__attribute__((constructor)) static void hang(void)
{
	for (;;)
		pause();
}
