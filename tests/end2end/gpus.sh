# The real binary on four GPUs that are not there, for the scripts beside it, which begin with it. Takes ASSAY FAKES ROOT of them.
set -u
assay=$(realpath "$1") fakes=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
all_libraries
LD_LIBRARY_PATH=$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH FAKE_NVML_FILE="$root/tests/fake/h100x4.json"
value() { # RUN CASE FIELD: of a case's last result that has it
	sed -n "s/.*\"type\":\"result\",\"case\":$2,.*\"$3\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" "$1/journal.jsonl" | tail -n 1
}
judged() { # CASE RUN VERDICT CAUSE: in every row that the case has
	grep "^$1," "$2/results.csv" > rows && ! grep -v ",\"$3\",\"$4\"," rows
}
