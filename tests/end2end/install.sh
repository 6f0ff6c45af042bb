#!/bin/sh
# `meson install --destdir`: everything in its place, and the installed program runs with its modules.
# usage: install.sh SOURCE BUILD VERSION PREFIX
set -u
source=$1 build=$2 version=$3 prefix=$4
command -v meson > /dev/null 2>&1 || { echo "1..0 # SKIP meson is not on PATH"; exit 0; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$source/tests/end2end/tap.sh"

ok "it installs into a folder" meson install -C "$build" --no-rebuild --destdir "$tmp/root"
top=$tmp/root$prefix assay=$tmp/root$prefix/bin/assay
ok "the program" [ -x "$assay" ]
ok "its page of the manual" [ -s "$top/share/man/man1/assay.1" ]
ok "completion for bash" [ -s "$top/share/bash-completion/completions/assay" ]
ok "completion for zsh" [ -s "$top/share/zsh/site-functions/_assay" ]
doc=$top/share/doc/assay
for page in LICENSE docs/README.md docs/tutorial/first-check.md docs/how-to/find-the-slow-gpu.md docs/explanation/methods/README.md docs/explanation/design/exit.md docs/explanation/design/input.md docs/explanation/design/suite.md \
	docs/reference/lists.md docs/reference/commands.md docs/schema/results.schema.json examples/site.yaml; do
	ok "$page" [ -s "$doc/$page" ]
done
# Each docs/ or examples/ path that a page names is there too.
named() { grep -rhoE '(docs|examples)/[A-Za-z0-9_/-]+\.(md|yaml|jsonl|json)' "$doc" | sort -u; }
absent() { named | while read -r path; do [ -e "$doc/$path" ] || echo "$path"; done; }
absent > absent.list
ok "pages point to pages that are there: $(tr '\n' ' ' < absent.list)" [ ! -s absent.list ]
others() { find "$tmp/root" -type f | grep -vE '/bin/assay$|/lib/assay/libassay(-(plot|archive|mpi|http|curl|screen)|_inject)\.so$|/assay\.1$|/completions/assay$|/_assay$|/share/doc/assay/'; }
others > list
ok "and nothing else" [ ! -s list ]

ok "the example of a suite is one" expect 0 check --suite "$doc/examples/suite.yaml" --plan
ok "the example of a site file is one" expect 0 check quick --site "$doc/examples/site.yaml" --plan
printf 'name: tiny\ncases:\n  - {probe: "null", phases: burst, require: measured, options: {time: 1ms}}\n' > tiny.yaml
ok "it says its version" expect 0 --version
ok "which is this one" says "$version" out
expect 0 check --suite tiny.yaml --out made
ok "it runs a suite" [ "$code" -le 2 ]
ok "and writes a report" [ -s made/report.html ]
if [ -e "$top/lib/assay/libassay-plot.so" ]; then
	ok "its module draws a PNG" [ -s made/roofline.png ]
fi
if [ -e "$top/lib/assay/libassay-archive.so" ]; then
	ok "its module packs" expect 0 archive made --out made.tar.zst
fi
finish
