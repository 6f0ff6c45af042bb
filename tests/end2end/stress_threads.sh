#!/bin/sh
# The CPU case of a stress uses all CPUs that the process may use, and no others: its own threads, and those of the BLAS library.
# usage: stress_threads.sh ASSAY FAKE_BLAS
set -u
assay=$(realpath "$1") fake=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
usable=$(nproc) # CPUs of the affinity mask
[ "$usable" -gt 1 ] || lacks "a second CPU"
ASSAY_LIB_OPENBLAS=$fake FAKE_BLAS_SLOW=none
export ASSAY_LIB_OPENBLAS FAKE_BLAS_SLOW
stress() { # FILE [COMMAND..]: the case; FILE receives the CPUs of a library's thread
	FAKE_BLAS_CPUS=$PWD/$1
	export FAKE_BLAS_CPUS
	name=$1
	shift
	# other programs may take CPU time: the verdict is not the subject
	"$@" "$assay" probe stress type=fp32 n=64 bytes=1048576 --target cpu --seconds 0.1 --no-telemetry --out "run-$name" > out 2> err
	[ -s "$name" ]
}
threads() { grep -o '"threads":[0-9]*' "run-$1/journal.jsonl" | tail -n 1 | tr -dc 0-9; }

ok "a stress on all usable CPUs" stress all
ok "has a thread for each" [ "$(threads all)" = "$usable" ]
ok "and the library's threads may use all of them" [ "$(cat all)" = "$usable" ]
first=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
ok "with one CPU allowed" stress one taskset -c "$first"
ok "one thread runs" [ "$(threads one)" = 1 ]
ok "the library's threads may use that CPU only" [ "$(cat one)" = 1 ]
finish
