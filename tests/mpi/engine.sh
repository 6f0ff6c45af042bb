#!/bin/sh
# Engine mpi under mpirun: every operation and type with all of its elements checked on every rank, faults that are found.
# usage: engine.sh MPI_ENGINE MODULE FAKE     MODULE: libassay-mpi.so; FAKE: a plug-in with a fault
. "$(dirname "$0")/mpirun.sh"
only_open_mpi
engine=$program

# drive CODE RANKS: the cases of `lines`
drive() {
	want=$1
	rm -f shared
	started "$2" "$engine" "$tmp/lines" "$tmp/shared" > out 2> err
	code=$?
	[ "$want" = any ] || [ "$code" = "$want" ]
}
count() { grep -c -- "$1" out; }

for op in allreduce reducescatter reduce; do
	for type in fp32 fp64 int8 int32; do
		for reduce in sum min max; do echo "op=$op reduce=$reduce type=$type size=4800B"; done
	done
done > lines
for op in allgather alltoall broadcast sendrecv; do
	for type in fp32 fp64 int8 int32; do echo "op=$op type=$type size=4800B"; done
done >> lines
for op in allreduce reducescatter reduce allgather broadcast; do echo "op=$op type=fp32 place=in size=4800B"; done >> lines
echo "op=reduce type=fp64 root=2 size=1MiB" >> lines
echo "op=broadcast type=fp64 root=1 size=1MiB" >> lines
echo "op=allreduce type=int8 size=1B" >> lines
cases=$(wc -l < lines)
for ranks in 3 4; do
	ok "$cases cases on $ranks ranks" drive 0 $ranks
	ok "each right on each rank, and timed" [ "$(count ': ok, : 0 wrong of [0-9]*, timed: $')" = $((cases * ranks)) ]
done

ASSAY_LIB_MPI_PLUGIN=$fake FAKE_MPI_REAL=$module
export ASSAY_LIB_MPI_PLUGIN FAKE_MPI_REAL FAKE_MPI
echo "op=allreduce type=fp32 size=4800B" > lines
echo "op=alltoall type=int32 size=4800B" >> lines
FAKE_MPI=element=77
ok "one wrong element on rank 1" drive 0 4
ok "is found on rank 1" [ "$(count 'rank 1: .*: mismatch, wrong_result: 1 wrong of 1200, .*at element 77')" = 2 ]
ok "and nowhere else" [ "$(count ': ok, : 0 wrong')" = 6 ]
ok "whose it is, where data moved" says 'element 77, from rank 0: expected' out
FAKE_MPI=lost
echo "op=allreduce type=int32 size=4800B" > lines
ok "a rank whose share is lost" drive 0 4
ok "is named by all" [ "$(count "rank 1's share is missing")" = 4 ]
FAKE_MPI=die=2
ok "a rank that dies in a call ends the others" drive any 4
ok "with a failure" [ "$code" != 0 ]
unset FAKE_MPI

# Not launched by an MPI, or by one that started others too.
alone() { OMPI_COMM_WORLD_RANK=$1 OMPI_COMM_WORLD_SIZE=2 "$engine" lines shared; }
rm -f shared
{ alone 0 > out0 & alone 1 > out1; wait; } 2> err
ok "without an MPI launcher it is not tried" says 'unsupported, : .*no MPI launcher started these ranks: use assay launch --how mpirun' out0
ok "on both ranks" says 'no MPI launcher started these ranks' out1
finish
