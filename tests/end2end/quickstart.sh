#!/bin/sh
# The last words of quickstart are true: of a run, of a plan, of help, of mistakes. What it would install and build is there.
# The command is that of docs/tutorial/first-check.md and docs/how-to/check-a-machine.md.
# usage: quickstart.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
mkdir -p tree/build/src bin elsewhere
cp "$root/quickstart" tree/
ln -s "$assay" tree/build/src/assay
: > tree/build/build.ninja
for tool in ninja meson cc gcc pkg-config apt-get nvcc; do # what is asked of them is done
	printf '#!/bin/sh\nexit 0\n' > bin/$tool && chmod +x bin/$tool
done
printf '#!/bin/sh\necho "$*" > asked\necho "[7/9] Compiling"\nsleep ${SLOW:-0}\n' > bin/ninja
mkdir tree/tests
printf '#!/bin/sh\n' > tree/tests/run.sh && chmod +x tree/tests/run.sh
PATH=$tmp/bin:$PATH
cd elsewhere || exit 1
printf 'name: tiny\ncases:\n  - {probe: "null", phases: burst, require: nothing, options: {time: 1ms}}\n' > tiny.yaml
printf 'name: bad\ncases:\n  - {probe: "null", phases: burst, options: {time: 1ms, wrong: data}}\n' > bad.yaml
quick() { # CODE ARGS..
	want=$1
	shift
	../tree/quickstart "$@" < /dev/null > out 2> err
	[ $? = "$want" ]
}
no_verdict() { ! grep -q 'quickstart: verdict' out err; }
ok "a plan is a plan" quick 0 --suite tiny.yaml --plan
ok "without a verdict" no_verdict
ok "help is help" quick 0 quick --help
ok "without a verdict" no_verdict
ok "a run builds what running needs" says 'build program$' ../tree/asked
ok "and says so" says 'building the program (log: build/build.log)' err
ok "the tests build all" sh -c '../tree/quickstart test && grep -q "build all$" ../tree/asked'
ok "a terminal sees the build go on" sh -c 'SLOW=3 script -qec "../tree/quickstart --suite tiny.yaml --plan" seen > seen.out && grep -q "7 of 9 build steps" seen'
ok "a suite that is not there is wrong usage" quick 64 --suite nowhere.yaml
ok "without a verdict" no_verdict
ok "no report, it says" says 'no report was written' err
ok "an unknown suite too" quick 64 qick
ok "a directory that cannot be made has no verdict" quick 2 --suite tiny.yaml --out /proc/assay
ok "without one" no_verdict
ok "a run that held says so, in the caller's folder" quick 0 --suite tiny.yaml
ok "with the verdict" says 'verdict: all requirements are met' err
ok "a report as JSON" quick 0 --suite tiny.yaml --json --out as_json
ok "is JSON alone" sh -c 'head -c 1 out | grep -q "{" && tail -n 1 out | grep -q "^}" && ! grep -q quickstart: out'
ok "and the report is there" sh -c 'ls assay-runs/*/report.html'
ok "one that failed is a report too" quick 0 --suite bad.yaml --out failed
ok "with its verdict" says 'verdict: something FAILED' err
# Packages are missing: what apt-get says goes to the build's own folder, never through a name in /tmp that anybody may lay a link at.
printf '#!/bin/sh\nexit 1\n' > ../bin/pkg-config
printf '#!/bin/sh\n[ "$1" != install ] || { echo "apt-get was asked to install"; exit 100; }\n' > ../bin/apt-get
printf '#!/bin/sh\n[ "$1" != -n ] || shift\nexec "$@"\n' > ../bin/sudo && chmod +x ../bin/sudo
mkdir ../T
ok "packages that cannot be installed end it" env TMPDIR="$tmp/T" sh -c '../tree/quickstart --suite tiny.yaml --plan > out 2> err < /dev/null; [ $? = 1 ]'
ok "with what apt-get said" says 'apt-get was asked to install' err
ok "which is kept beside the build" says 'apt-get was asked to install' ../tree/build/apt.log
ok "and named" says 'log: build/apt.log' err
ok "no script writes to a name that can be guessed in a folder of all" eval \
	'! (cd "$root" && grep -rnE "(/tmp|TMPDIR[^ ]*)/[^ ]*[\$]\\$" quickstart .ci tools tests/*.sh tests/end2end tests/gpu tests/mpi tests/replay)'
finish
