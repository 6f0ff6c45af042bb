#!/bin/sh
# Runs a test, and writes its CPU time to a file of its own: its words, then the shell's times, the second line for what it waited for.
# tests/run.sh shows the tests that take most.
# usage: CPU_TIMES=FOLDER cpu_time.sh COMMAND..
"$@"
code=$?
{
	echo "$*"
	times
} > "$CPU_TIMES/$$"
exit "$code"
