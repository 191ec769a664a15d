// SPDX-License-Identifier: GPL-2.0-only
// Draws the figures of a report, in the page's colours, which may change.
"use strict";
(function () {
	const figures = JSON.parse(document.getElementById("figures").textContent);
	const NARROW = 600; // px
	const BUTTONS = [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]];

	// Bars of policies have nothing to zoom into; else the buttons stand beside the plot.
	function zooms(figure) {
		return figure.data.length > 1 || figure.data[0]?.type !== "bar";
	}

	// What of a layout depends on the page: text and lines in its colours.
	function themed(layout) {
		const style = getComputedStyle(document.body);
		const look = {
			"font.color": style.color,
			"modebar.color": style.getPropertyValue("--quiet"),
			"modebar.activecolor": style.color,
		};
		for (const key of Object.keys(layout)) {
			if (!/^[xy]axis\d*$/.test(key))
				continue;
			const line = style.getPropertyValue("--line");
			look[key + ".gridcolor"] = line;
			look[key + ".zerolinecolor"] = line;
			look[key + ".linecolor"] = line;
		}
		return look;
	}

	// A legend takes more lines where the page is narrow: the plot keeps its height.
	function height(figure, width) {
		const names = figure.data.filter((one) => one.showlegend !== false);
		if (names.length < 2)
			return figure.layout.height;
		const letters = Math.max(...names.map((one) => (one.name || "").length));
		const columns = Math.max(1, Math.floor((width - 40) / (letters * 7 + 50)));
		return figure.layout.height + 19 * Math.ceil(names.length / columns);
	}

	// In the page's colours of now, as wide as there is room.
	function redraw() {
		for (const [index, figure] of figures.entries()) {
			const place = document.getElementById("figure-" + index);
			const width = place.clientWidth;
			const look = themed(figure.layout);
			const size = { ...look, width, height: height(figure, width) };
			// The first time a legend's place is that of its lines before.
			Plotly.relayout(place, size);
			Plotly.relayout(place, size);
		}
	}

	for (const [index, figure] of figures.entries()) {
		const place = document.getElementById("figure-" + index);
		const layout = structuredClone(figure.layout);
		layout.height = height(figure, place.clientWidth);
		layout.font = { family: "inherit", size: place.clientWidth < NARROW ? 11 : 12 };
		layout.dragmode = place.clientWidth < NARROW ? false : "zoom";
		layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
		layout.modebar = { orientation: "v", bgcolor: "rgba(0,0,0,0)" };
		if (zooms(figure))
			layout.margin.r = 36;
		Plotly.newPlot(place, figure.data, layout, {
			displaylogo: false,
			displayModeBar: zooms(figure),
			modeBarButtons: BUTTONS,
		});
		Plotly.relayout(place, themed(figure.layout));
	}
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
	addEventListener("resize", redraw);
	// Paper is white, and as wide as it is.
	addEventListener("beforeprint", () => {
		document.body.classList.add("paper");
		redraw();
	});
	addEventListener("afterprint", () => {
		document.body.classList.remove("paper");
		redraw();
	});
	document.body.dataset.drawn = figures.length;
})();
