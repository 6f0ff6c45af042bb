# mpirun on this machine alone, for the scripts beside it, which take it in with `.`: on fewer cores than ranks too, as root
# too (a container), and with its own files in a folder of the test's. Output of all ranks is stdout's.
TMPDIR=$tmp/mpi
unset LD_LIBRARY_PATH # a test harness has the folder of the fakes in it, GPUs among them
mkdir -p "$TMPDIR"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Shared memory copies need rights that a container may lack; and nothing leaves the machine.
OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
export TMPDIR OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_mpi_yield_when_idle
# MPI itself frees little of what it takes: a build with LeakSanitizer looks for everything else.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS
# started RANKS COMMAND..
started() {
	count=$1
	shift
	case $(mpirun --version 2> /dev/null) in
	*"Open MPI"* | *OpenRTE*) timeout 60 mpirun --oversubscribe --bind-to none -n "$count" "$@" ;;
	*) timeout 60 mpirun -n "$count" "$@" ;;
	esac
}
