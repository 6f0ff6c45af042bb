#!/bin/sh
# tools/run-pages, and by it every command of docs/tutorial and docs/how-to that runs without a GPU. GPU commands are planned here;
# tools/check-gpu runs them.
# usage: pages.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, even where there is a GPU
# Ranks of mpirun that wait leave the cores to others (tests/fake/mpi_yield.c), and threads of OpenBLAS too. No figure of a page is judged here.
yield=$(dirname "$assay")/../tests/fake/mpi_yield.so
[ ! -e "$yield" ] || { LD_PRELOAD=$(realpath "$yield") OMPI_MCA_mpi_yield_when_idle=1 && export LD_PRELOAD OMPI_MCA_mpi_yield_when_idle; }
run_pages() { # CODE ARGS..
	want=$1
	shift
	"$root/tools/run-pages" "$@" > out 2> err
	[ $? = "$want" ]
}

# The tool finds what is wrong with a page.
page() { # MARKER COMMAND: a page with one block
	printf '# Page\n\n%s\n```sh\n%s\n```\n' "$1" "$2" > page.md
}
one() { run_pages "$1" --on cpu "$assay" "$root" "$tmp/one" page.md; }
page '' 'true'
ok "a block without a marker is wrong" run_pages 1 --check "$root" page.md
ok "the page and the line are named" says 'page.md:4: the sh block has no marker' out
page '<!-- run: sometimes -->' 'true'
ok "an unknown marker is wrong" run_pages 1 --check "$root" page.md
page '<!-- run: no -->' 'true'
ok "so is one without a reason" run_pages 1 --check "$root" page.md
page '<!-- run: tests/end2end/check.sh -->' 'true'
ok "so is a script that does not name the page" run_pages 1 --check "$root" page.md
page '<!-- run: no (a, b) -->' 'exit 1'
printf '[gone](gone.md)\n' >> page.md
ok "so is a link that leads nowhere" run_pages 1 --check "$root" page.md
page '<!-- run: no (a, b) -->' 'exit 1'
ok "a reason may have a comma" run_pages 0 --check "$root" page.md
ok "such a block does not run" one 0
page '<!-- run: cpu -->' 'exit 1'
ok "an exit code other than 0 is wrong" one 1
ok "the command is named" says '^not ok 1 - page.md:4: exit 1: exit code 1, expected 0' out
page '<!-- run: cpu, exit 1-2 -->' 'exit 2'
ok "unless the marker allows it" one 0
page '<!-- run: cpu, needs no-such-program -->' 'exit 2'
ok "a block that needs a missing program is skipped" one 0
ok "the program is named" says 'SKIP there is no no-such-program' out
page '<!-- run: cpu -->' 'assay() { echo "$*"; }; assay probe memory; assay probe memory size=1 # a comment' && sed -i 's/; assay/\nassay/g' page.md
PAGES_SECONDS=7ms
export PAGES_SECONDS
ok "measurements can be shortened" one 0
ok ".. each of them" eval '[ "$(cat one/page/blocks/1.log)" = "probe memory --seconds 7ms
probe memory size=1 --seconds 7ms" ]'
unset PAGES_SECONDS
ok "and are not, unless it is asked for" one 0
ok ".. none of them" eval '[ "$(grep -c seconds one/page/blocks/1.log)" = 0 ]'
page '<!-- run: gpu -->' 'assay probe memory nonsense=1   # no such option'
ok "a GPU command with a wrong option fails without a GPU" one 1
printf '<!-- output: printf "a   b c\\n" -->\n```text\n a b\n...\n```\n' > page.md
if [ -d "$root/results" ]; then
	ok "an output that is printed" one 0
	sed -i 's/ a b/a d/' page.md
	ok "and one that is not" one 1
fi

# The pages themselves.
ok "every block is marked, every link has a target" \
	run_pages 0 --check "$root" "$root"/docs/README.md "$root"/docs/tutorial/*.md "$root"/docs/how-to/*.md
# Each command with windows of 20 ms: no figure is judged, and tests/long/clean_runs.sh runs the longest of them in full.
n_before=$n
PAGES_SECONDS=20ms
export PAGES_SECONDS
# However short the windows, the suite quick takes 11 s of CPU time to multiply large matrices by each BLAS library, which tests/unit/probe_gemm.c
# does with small ones. Without the libraries these cases are skipped.
ASSAY_LIB_OPENBLAS=/none ASSAY_LIB_OPENBLAS_WHEEL=/none ASSAY_LIB_MKL=/none ASSAY_LIB_AOCL=/none ASSAY_LIB_ONEDNN=/none \
	"$root/tools/run-pages" --on cpu "$assay" "$root" "$tmp/pages" "$root/docs/tutorial/first-check.md" > all
[ $? = 0 ] || fail=1
others=$(ls "$root"/docs/tutorial/*.md "$root"/docs/how-to/*.md | grep -v '/first-check.md$')
"$root/tools/run-pages" --on cpu "$assay" "$root" "$tmp/pages" $others >> all
[ $? = 0 ] || fail=1
awk -v n="$n_before" '/^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n) } /^1\.\./ { next } { print }' all
n=$((n_before + $(grep -cE '^(not )?ok ' all)))
ok "the pages have commands" [ "$(grep -cE '^(not )?ok ' all)" -gt 40 ]
finish
