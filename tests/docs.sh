#!/bin/sh
# The committed pages are what the program prints. usage: docs.sh ASSAY ROOT [--update]
set -eu
assay=$(realpath "$1") root=$2
if [ "${3:-}" = --update ]; then exec "$assay" __docs "$root"; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$assay" __docs "$tmp"
fail=0
(cd "$tmp" && find . -type f) | while read -r page; do
	cmp -s "$tmp/$page" "$root/$page" || { echo "$page is behind: run tests/docs.sh ASSAY ROOT --update"; diff "$root/$page" "$tmp/$page" | head -n 10; exit 1; }
done || fail=1
bash -n "$tmp/docs/completion/assay.bash" || fail=1
# The how-to has every code that the server sends in an error.
codes=$(find "$root/src/serve" -name '*.c' -exec cat {} + | tr '\n\t' '  ' | grep -oE '(api_fail\( *&?[a-z>-]+, [0-9]+, *|code = )"[a-z_]+"' | sed 's/.* "\(.*\)"$/\1/' | sort -u)
[ "$(echo "$codes" | wc -w)" -gt 10 ] || { echo "the sources of the server have no codes of errors"; fail=1; }
for code in $codes; do
	grep -q "^| [0-9]* | \`$code\` |" "$root/docs/how-to/troubleshoot-a-server.md" || { echo "troubleshoot-a-server.md lacks the code $code"; fail=1; }
done
# What a user gets at the tab key: LINE's last word completed holds WORD.
completes() { # word, line's words..., as the shell splits them
	bash -c '. "$1"; want=$2; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _assay
		printf "%s\n" "${COMPREPLY[@]}" | grep -qxF -- "$want"' sh "$tmp/docs/completion/assay.bash" "$@" ||
		{ echo "completion of '$*' lacks '$1'"; fail=1; }
}
completes probe assay pr
completes gemm assay probe ge
completes type= assay probe gemm ty
completes bf16 assay probe gemm type = b
completes markdown assay check --format m
completes --target assay probe gemm --ta
completes exhaustive assay probe gemm --beside search = e
cd "$tmp" # it has a folder docs
completes quick assay check qu
completes links assay check --suite li
completes gpu assay check --target g
completes compare assay help comp
completes help assay he
completes --served-model-name assay serve --served
completes fp8 assay serve --kv-cache f
completes check assay launch -- ch
completes docs assay report do
# Help, page and manual show every choice of an option, however many there are.
shapes=$(sed -n "s/.*make-model:--shape) words='\([^']*\)'.*/\1/p" docs/completion/assay.bash)
[ "$(echo "$shapes" | wc -w)" -gt 10 ] || { echo "the completion has no shapes of make-model"; fail=1; }
"$assay" make-model --help > help
for shape in $shapes; do
	grep -q -- "[ |]$shape\([ |]\|\$\)" help && grep -q -- " $shape \(·\||\)" docs/reference/commands.md && sed 's/\\-/-/g' docs/man/assay.1 | grep -q -- "[ |]$shape\(|\|\$\)" || {
		echo "a list of choices is cut before '$shape'"
		fail=1
	}
done
[ "$fail" = 0 ] && echo "docs: every page is current"
exit "$fail"
