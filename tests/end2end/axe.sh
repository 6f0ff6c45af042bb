#!/bin/sh
# The pages of a check with failures, of a load test, of a profile and of a tour in headless Chromium: axe-core finds no serious or critical violation,
# light or dark, wide or narrow; tables sort and filter, links open the case they name, and everything that can be clicked has the keyboard too.
# usage: axe.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch

# none REASON: there is no browser. That is a failure where it was to be installed.
none() {
	if [ "${ASSAY_TEST_BROWSER:-no}" = yes ]; then
		printf '1..1\nnot ok 1 - %s\n' "$1"
		exit 1
	fi
	echo "1..0 # SKIP $1"
	exit 0
}
browser=
for name in chromium chromium-browser google-chrome; do
	# a package may be a stub that only names another package: it must start
	if command -v "$name" > /dev/null && "$name" --version > /dev/null 2>&1; then browser=$name && break; fi
done
[ "$browser" ] || none "no Chromium on this machine"

# seen PAGE SCRIPT FLAG..: the lines that SCRIPT makes on PAGE, in ./seen. The copy's policy lets the script in.
seen() {
	html=$1 script=$2
	shift 2
	{
		sed "s/script-src [^\"]*\"/script-src 'unsafe-inline'\"/" "$html"
		echo '<script>'
		cat "$script"
		echo '</script>'
	} > tried.html
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$tmp/browser" \
		--window-size=1280,900 --virtual-time-budget=100000 --dump-dom "$@" "file://$tmp/tried.html" 2> browser.log |
		sed -n '/<body>SEEN/,/^END/p' > seen
	cp seen out
	grep -q '^END' seen
}
{
	gzip -dc "$root/tests/data/axe/axe.min.js.gz"
	cat <<- 'JS'

		document.querySelectorAll("details").forEach((d) => { d.open = true; });
		axe.run(document, { resultTypes: ["violations"] }).then((result) => {
			const of = (rule) => rule.nodes.map((node) => `${rule.impact} ${rule.id} ${node.target} ${node.failureSummary.replaceAll("\n", " ")}`);
			const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
			document.body.textContent = [`SEEN ${scheme}, ${result.passes.length} rules pass`, ...result.violations.flatMap(of), "END"].join("\n");
		});
	JS
} > axe.js
cat > hands.js << 'JS'
const said = [], say = (name, holds) => said.push(`${holds ? "yes" : "no"} ${name}`);
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const shown = (element) => element.checkVisibility();

const table = document.querySelector("table.results"), heads = [...table.tHead.rows[0].cells];
const column = heads.findIndex((head) => head.textContent === "figure");
const values = () => [...table.tBodies[0].rows].map((row) => row.cells[column].dataset.v).filter((v) => v !== undefined).map(Number);
const rises = (list) => list.every((v, i) => !i || list[i - 1] <= v);
heads[column].querySelector("button").click();
say("a heading sorts", values().length > 2 && rises(values()) && heads[column].ariaSort === "ascending");
heads[column].querySelector("button").click();
say("and sorts the other way", rises(values().reverse()) && heads[column].ariaSort === "descending");

const field = document.querySelector("#results input[type=search]"), rows = all("#results table.results tbody tr");
const type = (text) => { field.value = text; field.dispatchEvent(new Event("input")); };
type("FAIL gemm");
const kept = rows.filter(shown);
say("the filter keeps rows with every word", kept.length > 0 && kept.length < rows.length &&
	kept.every((row) => /fail/i.test(row.textContent) && /gemm/i.test(row.textContent)));
say("and says how many", /^\d+ of \d+$/.test(document.querySelector(".filter output").textContent));
type("no such case");
say("a table without rows goes", !rows.some(shown) && !all("#results table").filter((t) => t.matches(".results")).some(shown));
type("");
say("an empty filter keeps all", rows.every(shown));

const closed = all("details[id^=gap-]").find((d) => !d.open) ?? all("details[id^=gap-]")[0];
closed.open = false;
const local = all("a[href^='#']");
say("every link has its place", local.length > 9 && local.every((a) => document.getElementById(a.hash.slice(1))));
say("a finding links to its case", all("#todo a").some((a) => document.getElementById(a.hash.slice(1)).closest("#results")));
const reached = (e) => e.closest("a[href], button, summary, input, label") !== null;
say("what can be clicked has the keyboard", all("body *").every((e) => getComputedStyle(e).cursor !== "pointer" || reached(e)));
const first = all("a[href], button, summary, input")[0];
first.focus();
say("the first stop skips to the content", first.hash === "#main" && first.getBoundingClientRect().left >= 0);
addEventListener("hashchange", () => {
	say("a link to a case opens it", closed.open);
	closed.open = false;
	dispatchEvent(new Event("beforeprint"));
	say("all is open for print", all("details").every((d) => d.open));
	document.body.textContent = ["SEEN", ...said, "END"].join("\n");
});
location.hash = closed.id;
JS

# A check with failures, and a profile: both recorded on an H100.
"$assay" report "$root/tests/data/report/h100-fault" --format html > check.html
ok "a check with failures" [ $? = 1 ]
cp -r "$root/results/2026-11-22-h100-sxm/profile_single" run && tar -xf run/rings.tar.xz -C run && "$assay" report run --write > /dev/null
cp run/PROFILE.html profile.html
ok "a profile" [ -s profile.html ]
"$assay" report "$root/tests/data/load/sweep" --format html > load.html
ok "a load test" [ $? = 0 ]
"$assay" demo training --steps machine,memory,answer --train-steps 3 --out tour > /dev/null 2>&1
cp tour/demo.html demo.html
ok "a tour" says "loss over the steps" demo.html
sound() { # PAGE SCHEME FLAG..
	seen "$1.html" axe.js ${3:-} && grep -q "<body>SEEN $2, [3-9][0-9] rules" seen && ! grep '^serious\|^critical' seen
}
for page in check load profile demo; do
	ok "$page, light: no serious violation" sound $page light ''
	ok "$page, narrow: no serious violation" sound $page light --window-size=500,900
	ok "$page, dark: no serious violation" sound $page dark --blink-settings=preferredColorScheme=0
done
sed 's/--muted: #5c6570/--muted: #bcc5d0/' check.html > pale.html
planted() { seen pale.html axe.js && grep -q '^serious color-contrast' seen; }
ok "pale text is found" planted
seen check.html hands.js
while read -r holds name; do
	case $holds in yes | no) ok "check: $name" [ "$holds" = yes ] ;; esac
done < seen
ok "check: all of it was tried" [ "$(grep -c '^yes\|^no' seen)" = 12 ]
finish
