# mpirun on this machine alone, for the scripts beside it, which begin with it: on fewer cores than ranks too, as root
# too (a container), and with its own files in a folder of the test's. Output of all ranks is stdout's. Takes PROGRAM MODULE FAKE
# of them: what runs on each rank, libassay-mpi.so, and a plug-in with a fault.
set -u
program=$(realpath "$1") module=$(realpath "$2") fake=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
. "$here/../end2end/tap.sh"
case $(mpirun --version 2> /dev/null) in
*"Open MPI"* | *OpenRTE*) mpi=open ;;
"") lacks "mpirun is not installed (package openmpi-bin)" ;;
*) mpi=other ;;
esac
# only_open_mpi: what follows is said of it alone
only_open_mpi() { [ $mpi = open ] || lacks "mpirun is not Open MPI's (package openmpi-bin)"; }
scratch
ASSAY_MODULE_DIR=$(dirname "$module")
TMPDIR=$tmp/mpi
unset LD_LIBRARY_PATH # a test harness has the folder of the fakes in it, GPUs among them
mkdir -p "$TMPDIR"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Shared memory copies need rights that a container may lack; and nothing leaves the machine.
OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
# Open MPI otherwise loads every transport that it has in each rank, and leaves most of them unused. libucx alone brings ten libraries.
OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_osc=sm OMPI_MCA_coll=basic,libnbc,self,tuned
export OMPI_MCA_pml OMPI_MCA_btl OMPI_MCA_osc OMPI_MCA_coll
export ASSAY_MODULE_DIR TMPDIR OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_mpi_yield_when_idle
# Ranks that wait leave the cores to others (tests/fake/mpi_yield.c).
[ ! -e "$(dirname "$fake")/mpi_yield.so" ] || { LD_PRELOAD=$(dirname "$fake")/mpi_yield.so && export LD_PRELOAD; }
# MPI itself frees little of what it takes: a build with LeakSanitizer looks for everything else.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS
# started RANKS COMMAND..
started() {
	count=$1
	shift
	case $mpi in
	open) timeout "${patience:-600}" mpirun --oversubscribe --bind-to none -n "$count" "$@" ;;
	*) timeout "${patience:-600}" mpirun -n "$count" "$@" ;;
	esac
}
