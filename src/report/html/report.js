/* Tables sort by a click on a heading, and every case opens for paper. The page is whole without this. */
for (const table of document.querySelectorAll("table.results")) {
	const heads = [...table.tHead.rows[0].cells];
	heads.forEach((head, column) => {
		const button = document.createElement("button");
		button.type = "button";
		button.textContent = head.textContent;
		head.replaceChildren(button);
		button.addEventListener("click", () => {
			const down = head.getAttribute("aria-sort") === "ascending";
			const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
			const order = (a, b) => {
				const x = value(a), y = value(b);
				if (x === "" || y === "")
					return (x === "") - (y === "");
				const number = Number(x) - Number(y);
				return (down ? -1 : 1) * (Number.isNaN(number) ? x.localeCompare(y) : number);
			};
			heads.forEach((h) => h.removeAttribute("aria-sort"));
			head.setAttribute("aria-sort", down ? "descending" : "ascending");
			table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
		});
	});
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
