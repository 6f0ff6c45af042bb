/* Sorts and filters tables, opens the case that a link names, and unfolds everything for print. The page is complete without it. */
const find = (selector, inside = document) => [...inside.querySelectorAll(selector)];

/* The value of a cell for sorting: data-v, else a number with its unit's prefix, else the text. */
const prefixes = { n: 1e-9, u: 1e-6, "µ": 1e-6, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12 };
const valueOf = (row, column) => {
	const cell = row.cells[column], text = cell.textContent.trim();
	const parts = /^[^\d\s-]{0,2} ?(-?[\d.,]+(?:e[-+]?\d+)?)\s*(?:([nuµmkKMGT])[A-Za-z])?/.exec(text);
	if (cell.dataset.v !== undefined)
		return Number(cell.dataset.v);
	return parts ? Number(parts[1].replaceAll(",", "")) * (prefixes[parts[2]] ?? 1) : text === "–" ? "" : text;
};

for (const table of find("table.results, table.grid")) {
	const heads = [...table.tHead.rows[0].cells];
	heads.forEach((head, column) => {
		const button = document.createElement("button");
		if (!head.textContent)
			return;
		button.type = "button";
		button.textContent = head.textContent;
		head.replaceChildren(button);
		button.addEventListener("click", () => {
			const down = head.getAttribute("aria-sort") === "ascending";
			const order = (a, b) => {
				const x = valueOf(a, column), y = valueOf(b, column);
				if (x === "" || y === "")
					return (x === "") - (y === "");
				const sign = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
				return down ? -sign : sign;
			};
			heads.forEach((h) => h.removeAttribute("aria-sort"));
			head.setAttribute("aria-sort", down ? "descending" : "ascending");
			table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
		});
	});
}

/* One filter per section with many rows. A row stays if it has every word that was typed. */
const itemsOf = (inside) => find("table.results tbody tr, table.grid tbody tr, ol.todo > li, .curve", inside);
for (const section of find("main > section")) {
	const items = itemsOf(section), box = document.createElement("p"), field = document.createElement("input");
	const label = document.createElement("label"), count = document.createElement("output");
	if (items.length < 8 || !find("table.results, table.grid", section).length)
		continue;
	field.type = "search";
	label.append("Filter ", field);
	box.className = "filter";
	box.append(label, " ", count);
	section.querySelector("h2").after(box);
	field.addEventListener("input", () => {
		const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
		for (const item of items) {
			const text = item.textContent.toLowerCase();
			item.hidden = !words.every((word) => text.includes(word));
		}
		for (const block of find(".group, .wide, ol.todo", section)) {
			const inside = itemsOf(block);
			block.hidden = inside.length > 0 && inside.every((item) => item.hidden);
			if (words.length && block.tagName === "DETAILS" && !block.hidden)
				block.open = true;
		}
		count.textContent = words.length ? `${items.filter((item) => !item.hidden).length} of ${items.length}` : "";
	});
}

/* A link to a case opens its details and everything around them. */
const reveal = () => {
	const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
	for (let at = place?.closest("details"); at; at = at.parentElement.closest("details"))
		at.open = true;
	place?.scrollIntoView();
};
addEventListener("hashchange", reveal);
if (location.hash)
	reveal();

/* What scrolls sideways must be reachable by keyboard. */
const scrollers = () => find(".wide, pre").forEach((box) => {
	if (box.scrollWidth > box.clientWidth)
		box.tabIndex = 0;
	else
		box.removeAttribute("tabindex");
});
addEventListener("resize", scrollers);
scrollers();

addEventListener("beforeprint", () => find("details").forEach((d) => { d.open = true; }));
