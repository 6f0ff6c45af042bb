#!/bin/sh
# The chat page in headless Chromium, with an engine that has no model: an answer comes in pieces with its figures, an error is
# shown, and axe-core finds no serious or critical violation, light or dark, wide or narrow. usage: serve_page.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch
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
	if command -v "$name" > /dev/null && "$name" --version > /dev/null 2>&1; then browser=$name && break; fi
done
[ "$browser" ] || none "no Chromium on this machine"
front=
trap '[ -z "$front" ] || kill "$front"; rm -rf "$tmp"' EXIT
mkdir model && cp "$root/tests/data/tokenizer/qwen.json" model/tokenizer.json
echo '{"eos_token": "<|im_end|>"}' > model/tokenizer_config.json
ASSAY_MODULE_DIR=$build/src/serve
export ASSAY_MODULE_DIR
"$build/tests/serve/serve_front" model --chat-template qwen3 --cors-origin '*' -- "$build/tests/serve/stand_in_engine" step_us=2000 \
	answer="$tmp/answer" > port.out 2> front.err < /dev/null &
front=$!
for _ in $(seq 300); do grep -q port port.out && break; sleep 0.05; done
if grep -q 'built without' front.err; then echo "1..0 # SKIP this build has no tokenizers" && exit 0; fi
url=http://127.0.0.1:$(sed -n 's/^port //p' port.out)
for _ in $(seq 300); do grep -q ready front.err && break; sleep 0.05; done

# seen SCRIPT FLAG..: the lines that SCRIPT makes on a copy of the page that asks this server, in ./seen
seen() {
	script=$1
	shift
	{
		sed "s|fetch(\"/v1|fetch(\"$url/v1|" "$root/src/serve/page/chat.html"
		echo '<script>'
		sed "s|fetch(\"/v1|fetch(\"$url/v1|" "$script"
		echo '</script>'
	} > tried.html
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$tmp/browser" \
		--window-size=1280,900 --virtual-time-budget=30000 --dump-dom "$@" "file://$tmp/tried.html" 2> browser.log |
		sed -n '/<body>SEEN/,/^END/p' > seen
	cp seen out
	grep -q '^END' seen
}
cat > talk.js << 'JS'
const said = [], say = (name, holds) => said.push(`${holds ? "yes" : "no"} ${name}`);
/* Waits by asking the server: the browser's virtual time stands still during requests only. */
const until = async (holds) => { for (let i = 0; i < 20000 && !holds(); i++) await (await fetch("/v1/models")).text(); };
const turns = (kind) => [...document.querySelectorAll(`article.${kind}`)];
const send = async (text) => {
	at("message").value = text;
	at("form").requestSubmit();
	say("Send waits while the model answers", at("send").disabled && !at("stop").disabled);
	await until(() => !at("send").disabled);
};
(async () => {
	await until(() => at("model").options.length);
	say("the models are listed", at("model").options.length === 3);
	await send("Hello <b>there</b>");
	const answer = turns("assistant")[0];
	say("the question is shown as text", turns("user")[0].querySelector(".text").textContent === "Hello <b>there</b>");
	say("the answer comes", answer.querySelector(".text").textContent === "A <i>plain</i> answer.");
	say("its thought comes apart", answer.querySelector(".thought")?.textContent === "Hm.");
	/* a slow machine may receive all tokens at once, which gives no rate */
	say("with its figures", /^first token after \d+ ms(?: · [\d.]+ tokens\/s)? · \d+ tokens · \d+ in the prompt, \d+ of them cached$/.test(
		answer.querySelector(".figures").textContent));
	say("tokens per second are those after the first token", figures(20, 70, 1070, { completion_tokens: 11, prompt_tokens: 5 }) ===
		"first token after 50 ms · 10.0 tokens/s · 11 tokens · 5 in the prompt");
	await send("And more");
	say("a second answer comes", turns("assistant").length === 2 && turns("assistant")[1].querySelector(".figures"));
	say("the conversation is sent whole", messages.length === 4 && messages[1].content === "A <i>plain</i> answer.");
	at("most").value = "5000";
	await send("Too much");
	say("an error is shown", /maximum context length/.test(turns("assistant")[2].querySelector(".error").textContent));
	at("clear").click();
	say("a new conversation is empty", !document.querySelector("article") && !messages.length);
	document.body.textContent = ["SEEN", ...said, "END"].join("\n");
})();
JS
{
	gzip -dc "$root/tests/data/axe/axe.min.js.gz"
	cat <<- 'JS'

		const words = addTurn("assistant", "An answer");
		addLine(words, "thought", "A thought", true);
		addLine(words, "figures", "12 tokens/s");
		addLine(words, "error", "An error");
		addTurn("user", "A question");
		axe.run(document, { resultTypes: ["violations"] }).then((result) => {
			const of = (rule) => rule.nodes.map((node) => `${rule.impact} ${rule.id} ${node.target} ${node.failureSummary.replaceAll("\n", " ")}`);
			const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
			document.body.textContent = [`SEEN ${scheme}, ${result.passes.length} rules pass`, ...result.violations.flatMap(of), "END"].join("\n");
		});
	JS
} > axe.js
curl -s "$url/tokenize" -d '{"prompt": "<think>\nHm.\n</think>\n\nA <i>plain</i> answer."}' | sed 's/.*"tokens":\[\([^]]*\)\].*/\1/; s/,/ /g' > answer
ok "the page is served" sh -c "curl -s $url/ | cmp - '$root/src/serve/page/chat.html'"
ok "with a policy" sh -c "curl -si $url/ | grep -qi \"^content-security-policy: default-src 'none'\""
seen talk.js
while read -r holds name; do
	case $holds in yes | no) ok "$name" [ "$holds" = yes ] ;; esac
done < seen
ok "all of it was tried" [ "$(grep -c '^yes\|^no' seen)" = 13 ]
sound() { # SCHEME FLAG..
	seen axe.js ${2:-} && grep -q "<body>SEEN $1, [2-4][0-9] rules" seen && ! grep '^serious\|^critical' seen
}
ok "light: no serious violation" sound light ''
ok "narrow: no serious violation" sound light --window-size=500,900
ok "dark: no serious violation" sound dark --blink-settings=preferredColorScheme=0
finish
