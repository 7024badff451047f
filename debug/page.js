// Without this script the page is complete, and stands still. With it, what is marked
// data-live follows: the page is asked for again every two seconds, and what differs is
// put in place of what was there.
"use strict";
(() => {
	const follow = document.getElementById("follow");
	const stale = document.getElementById("stale");
	follow.hidden = false;
	const box = follow.querySelector("input");

	function selecting(el) {
		const s = document.getSelection();
		return s && !s.isCollapsed && (el.contains(s.anchorNode) || el.contains(s.focusNode));
	}

	function replace(el, next) {
		if (el.innerHTML === next.innerHTML || selecting(el)) return;
		const closed = [...el.querySelectorAll("details:not([open])")].map((d) => d.id);
		const focus = el.contains(document.activeElement) ? document.activeElement.id : "";
		el.replaceChildren(...[...next.childNodes].map((n) => document.importNode(n, true)));
		for (const id of closed) document.getElementById(id)?.removeAttribute("open");
		if (focus) document.getElementById(focus)?.focus();
	}

	async function update() {
		if (document.hidden || !box.checked) return;
		try {
			const answer = await fetch(location.pathname, { cache: "no-store" });
			if (!answer.ok) throw new Error(answer.status + " " + answer.statusText);
			const next = new DOMParser().parseFromString(await answer.text(), "text/html");
			for (const el of document.querySelectorAll("[data-live]")) {
				const other = next.getElementById(el.id);
				if (other) replace(el, other);
			}
			document.title = next.title;
			stale.textContent = "";
		} catch (err) {
			const since = document.getElementById("clock").textContent;
			const says = "These figures are of " + since + ": the program does not answer.";
			if (stale.textContent !== says) stale.textContent = says;
		}
	}

	(async () => {
		for (;;) {
			await new Promise((done) => setTimeout(done, 2000));
			await update();
		}
	})();
})();
