#!/bin/sh
# The MPI plug-in under mpirun: every collective, type and operation, parts of the ranks, what it refuses, a rank that dies.
# usage: plugin.sh MPI_RANKS MODULE FAKE     MODULE: libassay-mpi.so; FAKE: a plug-in with a fault
. "$(dirname "$0")/mpirun.sh"
ranks=$program

# drive CODE RANKS HOW
drive() {
	want=$1
	started "$2" "$ranks" "$3" > out 2> err
	code=$?
	[ "$want" = any ] || [ "$code" = "$want" ]
}
count() { grep -c -- "$1" out; }

ok "four ranks do every collective" drive 0 4 all
ok "and all of them all: 4 x 936 cases, none wrong" [ "$(count ': 936 cases, 0 wrong')" = 4 ]
ok "the plug-in tells its MPI" says '^version [A-Z].*[0-9]\.[0-9]' out
ok "three of four, by numbers of their own" drive 0 4 subset
ok "and none of theirs wrong" [ "$(count ': 702 cases, 0 wrong')" = 3 ]
ok "what it cannot do it refuses, and goes on" drive 0 2 refuse
ok "six times each" [ "$(count 'refused: ..')" = 12 ]
ok "a count beyond an int is said" says 'MPI_Allreduce takes at most 2147483647 elements, and 2147483648 were requested' out
ok "MPI's own words are passed on" says 'MPI_Bcast: MPI_ERR_ROOT' out
ok "a second begin in one process is refused" drive 0 2 twice
ok "on both ranks, with a sentence" [ "$(count 'refused: MPI was already initialized in this process')" = 2 ]
ok "a second process in one rank slot is refused" drive 0 2 again
ok "before MPI would abort it" [ "$(count 'refused: another process initialized MPI in rank slot . before')" = 2 ]
ok "and leaves nothing of the launcher's behind" [ -z "$(find "$TMPDIR" -name 'assay-mpi-*')" ]
drive any 4 die
ok "a killed rank ends the others" [ "$code" != 0 ]
ok "by its launcher, and not by our patience" [ "$code" != 124 ]

# Without it, without its MPI, and of another program.

mkdir empty broken
ok "named but absent, it is missing" sh -c '! ASSAY_LIB_MPI_PLUGIN=/none/libassay-mpi.so "$1" all > out' sh "$ranks"
ok "which names the path" says 'unavailable, library_missing: library mpi_plugin: /none/libassay-mpi.so does not exist' out
sed 's/libmpi\.so\.40/libmpi.so.99/; s/libmpi\.so\.12/libmpi.so.99/' "$module" > broken/libassay-mpi.so
ASSAY_LIB_MPI_PLUGIN=$tmp/broken/libassay-mpi.so
export ASSAY_LIB_MPI_PLUGIN
ok "without its MPI it is missing" sh -c '! "$1" all > out' sh "$ranks"
ok "which names the MPI" says 'library_missing: .*libmpi.so.99' out
ASSAY_LIB_MPI_PLUGIN=$fake FAKE_MPI=border
export FAKE_MPI
ok "of another border it is refused" sh -c '! "$1" all > out' sh "$ranks"
ok "as a mismatch" says 'unavailable, version_mismatch: the MPI plug-in .* was built for another version of assay' out
finish
