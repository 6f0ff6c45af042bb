/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck NAME SECONDS: a process with this name in state D, as one that hangs in a driver. vfork() holds its
 * parent in that state until the child ends. Unlike a real one, KILL ends it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned seconds;

	if (argc != 3)
		return 64;
	seconds = (unsigned)strtoul(argv[2], NULL, 10);
	prctl(PR_SET_NAME, argv[1]);
	if (!vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "stuck-child");
		sleep(seconds);
		_exit(0);
	}
	return 0;
}
