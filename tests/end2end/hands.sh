#!/bin/sh
# Careless hands and strangers' files: what is not a run, not a file, not a name, not plain text; Ctrl-C and a death while the
# machine is read; runs that start together. usage: hands.sh ASSAY HANGING-LIBRARY
set -u
assay=$(realpath "$1") hang=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
esc=$(printf '\033') bel=$(printf '\007')
printf 'name: tiny\ncases:\n  - {probe: "null", phases: burst, require: measured, options: {time: 1ms}}\n' > tiny.yaml
"$assay" check --suite tiny.yaml --out run > out 2> err
ok "there is a run" [ -s run/journal.jsonl ]
has_escape() { LC_ALL=C grep -q "[$esc$bel]" "$@"; }

# archive: runs alone, over regular files alone.
if "$assay" archive run --out probe.tar.zst > out 2> err; then
	mkdir plain && echo secret > plain/shadow
	ok "a folder that is no run is not packed" expect 64 archive plain
	ok "and it says why" says 'not a run directory' err
	cp -r run extra && echo secret > extra/shadow && mkdir extra/sub
	ok "a run is packed" expect 0 archive extra --out extra.tar.zst
	count=$(sed -n 's/.*: \([0-9]*\) files.*/\1/p' out)
	ok "with a run's files alone" [ "$count" = "$(find run -type f | wc -l)" ]
	mkfifo fifo
	ok "a FIFO is not replaced" expect 64 archive run --out fifo
	ok "it is still one" [ -p fifo ]
	ln -s victim link
	ok "nor is a link" expect 64 archive run --out link
	ok "nor what it names" [ ! -e victim ]
	ln -s victim o.tar.zst.new
	ok "no name beside it is followed" expect 0 archive run --out o.tar.zst
	ok "the archive is a file" sh -c '[ -f o.tar.zst ] && [ ! -L o.tar.zst ] && [ ! -e victim ]'
	ok "it can be written again" expect 0 archive run --out o.tar.zst
	ok "from within, it lies beside the run" sh -c 'cd run && "$1" archive . > ../out && [ -s ../run.tar.zst ] && ! ls -a | grep -q tar' sh "$assay"
	if mknod null c 1 3 2> ok.out; then
		ok "a device is not replaced" expect 64 archive run --out null
		ok "it is still one" [ -c null ]
	fi
fi

# Journals that are no files.
mkdir pipe && mkfifo pipe/journal.jsonl
ok "a FIFO is no journal, and is not waited for" timeout 20 sh -c '"$1" report pipe > out 2> err; [ $? = 64 ]' sh "$assay"

# Nor are other files that are none.
refused() { # ARGS..
	timeout 20 "$assay" "$@" > out 2> err
	[ $? = 64 ]
}
mkfifo site.fifo
for file in expectations.txt site.yaml; do
	rm -rf kx && cp -r run kx && mkfifo kx/$file
	sed -i 's/,"kept":{[^}]*}//' kx/journal.jsonl
	ok "a FIFO for $file is not waited for" refused report kx
	ok "and is named" says "kx/$file: it is not a regular file" err
done
mkdir set && mkfifo set/x.yaml
for set in set /dev/zero; do
	ok "nor are expectations that are none: $set" refused report run --expectations $set
	ok "which are named" says "$set.*: it is not a regular file" err
done
for site in site.fifo /dev/zero /dev/tty; do
	ok "nor is a site file that is none: $site" refused report run --site $site
	ok "which is named" says "$site" err
	ok "neither before a run" refused check quick --plan --site $site
done
ok "nor is a suite" refused check --suite site.fifo --plan
ok "nor is an archive" refused archive --check site.fifo
ok "which it says" says 'is not a regular file' err
mkdir device && ln -s /dev/zero device/journal.jsonl
ok "nor is a device" timeout 20 sh -c '"$1" report device > out 2> err; [ $? = 64 ]' sh "$assay"
ok "neither is gone on with" timeout 20 sh -c '"$1" check --resume pipe > out 2> err; [ $? = 64 ]' sh "$assay"

# Names and numbers.
for name in '../../evil' 'a b' '' '.hidden' 'a/b' "$(printf 'x\\e[31m')"; do
	printf 'name: "%s"\ncases:\n  - {probe: "null", options: {time: 1ms}}\n' "$name" > named.yaml
	ok "no suite is named $name" expect 64 check --suite named.yaml --plan
done
ok "it says where" says 'named.yaml:1' err
ok "and prints none of it raw" sh -c '! LC_ALL=C grep -q "$1" err' sh "$esc"
ok "a suite that is not there is wrong usage" expect 64 check --suite nowhere.yaml
ok "so is a run" expect 64 report nowhere
ok "so are two" expect 64 compare nowhere elsewhere
ok "so is a recording" expect 64 check --machine nowhere --plan
sizes=$(seq -s, 1 400)
ok "a cross product has a bound" timeout 20 sh -c '"$1" probe gemm "m=$2" "n=$2" "k=$2" --plan > out 2> err; [ $? = 64 ]' sh "$assay" "$sizes"
ok "which it names" says '64000000 cases' err

# Words of strangers on a terminal.
"$assay" info all --record rec > out 2> err
cp -r rec evil
sed -i 's/"kernel": "/"kernel": "\\u001b]0;PWN\\u0007\\u001b[31m\\u009b31m\\u202eX\\nforged/; s/model name\([^:]*\): /&\\u001b[31m/' evil/host.json
ok "a recording of a stranger shows" expect 0 info all --machine evil
ok "its words are there" says 'forged' out
ok "without escapes" sh -c '! LC_ALL=C grep -qE "$1" out' sh "[$esc$bel]"
ok "or their like" sh -c '! LC_ALL=C grep -q "$(printf "\302\233")\|$(printf "\342\200\256")" out'
ok "and no line is forged" sh -c '! grep -q "^forged" out'
ok "as JSON" expect 0 info all --json --machine evil
ok "they are escaped" says 'u202e' out
ok "none raw" sh -c '! LC_ALL=C grep -q "$(printf "\302\233")\|$(printf "\342\200\256")" out'
mkdir stranger
sed 's/"node":"[^"]*"/"node":"\\u009b31m\\u202e\\u001b[31m"/; s/"model":"[^"]*"/"model":"\\u009b31m\\u202e\\u001b[31m"/; s/"key":"null/&\\u202e\\u009b/g' run/journal.jsonl > stranger/journal.jsonl
raw() { LC_ALL=C grep -q "$(printf '\302\233')\|$(printf '\342\200\256')" "$1" || has_escape "$1"; }
not_raw() { ! raw "$1"; }
for format in text markdown html json csv; do
	"$assay" report stranger --format $format > out 2> err
	ok "a stranger's run as $format shows" [ -s out ]
	ok "without escapes" not_raw out
	case $format in text | json) plan=0 ;; *) plan=64 ;; esac # a plan has two forms
	ok "a plan as $format" expect $plan check --suite tiny.yaml --plan --format $format
	[ $plan = 0 ] || ok "which it has not, and says so" says "supports --format text and json, not $format" err
done
ok "another word is refused" expect 64 report run --format terminal

# Several runs, and what lies beside them.
mkdir many && cp -r run many/a && cp -r run many/b && mkdir many/roofline && : > many/x.log
ok "roofline passes over what is no run" expect 0 roofline many/* --out many/roofline
ok "and says so" says 'many/x.log: skipped' err
ok "its own output does not end it" expect 0 roofline many/* --out many/roofline
ok "it does not write over a run" expect 64 roofline many/a --out many/b
ok "where nothing is left it says so" expect 64 roofline many/roofline many/x.log --out new
ok "compare passes over them too" sh -c '"$1" compare many/* > out 2> err; [ $? != 64 ]' sh "$assay"

# Order and width.
"$assay" check --suite tiny.yaml --out torn > both 2>&1
ok "stdout comes before the last word on stderr" sh -c 'tail -n 1 both | grep -q "^assay: report: torn/report.html$"'
ok "COLUMNS holds for check" sh -c 'COLUMNS=60 "$1" check --suite tiny.yaml --out narrow > out 2> err; [ "$(wc -L < out)" -le 60 ]' sh "$assay"
ok "as for report" sh -c 'COLUMNS=60 "$1" report narrow > again 2> err; cmp out again' sh "$assay"

# Low limits.
(ulimit -n 40 && exec "$assay" check --suite tiny.yaml --out few > out 2> err)
ok "too few descriptors are named" says 'limit_low' few/REPORT.md
ok "with the limit" says 'ulimit -n' few/REPORT.md
(ulimit -s 64 && exec "$assay" list expectations > out 2> err)
ok "a stack of 64 KiB is refused, not overrun" [ $? = 2 ]
ok "with the limit" says 'ulimit -s' err
(ulimit -S -s 64 && exec "$assay" list expectations > out 2> err)
ok "a soft limit is raised" [ $? = 0 ]
ok "an empty statement is a slip" expect 64 check --suite tiny.yaml --plan --expect ""

# Two runs of equal machines that names alone tell apart.
mkdir renamed && sed 's/"hostname":"[^"]*"/"hostname":"host-00000000"/; s/"boot_id":"[^"]*"/"boot_id":"boot-00000000"/' run/journal.jsonl > renamed/journal.jsonl
"$assay" compare run renamed > out 2> err
ok "compare names --as history" says '--as history' out

# Runs that start together.
mkdir together && cd together || exit 1
for i in 1 2 3 4; do
	"$assay" check --suite ../tiny.yaml > out$i 2> err$i &
	pids="${pids-} $!"
done
for pid in $pids; do wait "$pid"; done
ok "each has its own directory" [ "$(ls assay-runs/*/journal.jsonl | wc -l)" = 4 ]
ok "each its report" [ "$(ls assay-runs/*/report.html | wc -l)" = 4 ]
cd ..

# Ctrl-C, and a death, while a library hangs in its load.
export ASSAY_LIB_NVML="$hang"
family() { ps -eo pid=,ppid= | awk -v root="$1" '{ up[$1] = $2 } END { for (p in up) for (q = p; q in up && q != 0; q = up[q]) if (q == root && p != root) print p }'; }
helped() { # a helper of $pid is at work
	for _ in $(seq 1200); do
		[ -z "$(pgrep -P "$pid")" ] || break
		sleep 0.05
	done
}
stopped() { # CODE SIGNALS ARGS..
	want=$1 times=$2
	shift 2
	"$assay" "$@" > out 2> err &
	pid=$!
	helped
	while [ "$times" -gt 0 ]; do
		kill -INT "$pid"
		times=$((times - 1))
	done
	wait "$pid"
	code=$?
	[ "$code" = "$want" ] && says 'stopped while the machine was read' err
}
for signals in 1 2; do
	ok "check ends on Ctrl-C x $signals" stopped 2 $signals check quick --out never
	ok "probe too" stopped 2 $signals probe versions --out never
	ok "info too" stopped 2 $signals info software
	ok "a recording too" stopped 2 $signals info all --record never-recorded
done
ok "nothing was begun" [ ! -e never ]
"$assay" info software > out 2> err &
pid=$!
helped
children=$(family "$pid")
ok "helpers were at work" [ -n "$children" ]
kill -KILL $pid
wait $pid 2> ok.out
gone() {
	for p in $children; do
		[ ! -e "/proc/$p" ] || grep -q '^State:[[:space:]]*Z' "/proc/$p/status" 2> /dev/null || return 1
	done
}
for _ in $(seq 120); do gone || sleep 0.5; done
ok "none outlives the program" gone
for p in $children; do kill -KILL "$p" 2> ok.out; done
finish
