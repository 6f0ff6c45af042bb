# TAP for the scripts beside it, which take it in with `.`.
n=0 fail=0
# No choices of the user's other runs are taken, and none of a test's are kept for them: a test of the cache names a folder of its own.
XDG_CACHE_HOME=/dev/null/assay
export XDG_CACHE_HOME
# The servers of a test are on this machine. A proxy that the user's environment names is not asked for them.
no_proxy=localhost,127.0.0.1,::1${no_proxy:+,$no_proxy}
NO_PROXY=$no_proxy
export no_proxy NO_PROXY
# Each start of the program loads every library to read its version. cuBLAS, cuDNN and NVRTC take 140 ms of CPU time and 50,000 page faults. A machine
# without a GPU uses none of them, so a test finds them only where it says `all_libraries`, as a test with fakes of them does.
all_libraries() { unset ASSAY_LIB_CUBLASLT ASSAY_LIB_CUDNN ASSAY_LIB_NVRTC; } # cuBLAS has no fake, and loading it takes 0.16 s
if [ ! -e /proc/driver/nvidia ]; then
	for library in CUBLAS CUBLASLT CUDNN NVRTC; do
		eval "export ASSAY_LIB_$library=\${ASSAY_LIB_$library:-/dev/null/assay}"
	done
fi
# hwloc in mpirun and in each of its ranks reads every PCI and I/O device, a fifth of the CPU time of a start. No test places ranks by devices.
HWLOC_COMPONENTS=${HWLOC_COMPONENTS:--pci,-linuxio}
export HWLOC_COMPONENTS
# scratch: to a folder of the test's own, $tmp, which goes when the test ends
scratch() {
	tmp=$(mktemp -d) || exit 1
	trap 'rm -rf "$tmp"' EXIT
	cd "$tmp" || exit 1
}
# ok NAME CONDITION..: one line of TAP
ok() {
	name=$1
	shift
	n=$((n + 1))
	if "$@" > ok.out 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' ok.out out err 2> /dev/null
		tail -n 20 ok.out err >&2 2> /dev/null # Meson shows this beside the name of a test that failed
		fail=1
	fi
}
# expect CODE ARGS..: runs $assay; its words are in out and err
expect() {
	want=$1
	shift
	"$assay" "$@" > out 2> err
	code=$?
	[ "$code" = "$want" ]
}
says() { grep -q -- "$1" "$2"; }
# lacks WORDS: a program is not here, or does not start: nothing is tested, which fails where all of them were to be installed.
lacks() {
	if [ "${ASSAY_TEST_DAEMONS:-no}" = yes ]; then
		printf '1..1\nnot ok 1 - %s\n' "$1"
		exit 1
	fi
	echo "1..0 # SKIP $1"
	exit 0
}
# in_long WORDS..: the words in `./quickstart test --long`, and nothing elsewhere. Of many combinations the ordinary tests have some, and --long all.
in_long() { [ "${ASSAY_TEST_LONG:-no}" = no ] || echo "$*"; }
# untested NAME WHY: one check cannot run on this machine. It fails where everything was to be installed, and is skipped elsewhere.
untested() {
	n=$((n + 1))
	if [ "${ASSAY_TEST_DAEMONS:-no}" = yes ]; then
		echo "not ok $n - $1: $2"
		fail=1
	else
		echo "ok $n - $1 # SKIP $2"
	fi
}
finish() {
	echo "1..$n"
	exit "$fail"
}
