// SPDX-License-Identifier: GPL-2.0-only
//
// The site's search runs in a Worker, which browsers refuse to pages that were
// opened as files. There a hidden frame takes the Worker's place. (mkdocs-material
// would load such a script from another host.)
class FrameWorker extends EventTarget {
	constructor(url) {
		super();
		this.frame = document.createElement("iframe");
		this.frame.hidden = true;
		document.body.append(this.frame);
		const inner = this.frame.contentWindow;
		inner.document.open();
		inner.document.write("<html><body></body></html>");
		inner.document.close();
		const run = (source) => new Promise((done, failed) => {
			const script = inner.document.createElement("script");
			script.src = source;
			script.onload = done;
			script.onerror = failed;
			inner.document.body.append(script);
		});
		inner.postMessage = (data) =>
			this.dispatchEvent(new MessageEvent("message", { data }));
		inner.importScripts = async (...sources) => {
			for (const source of sources)
				await run(source);
		};
		this.ready = run(url);
	}

	async postMessage(data) {
		await this.ready;
		const inner = this.frame.contentWindow;
		inner.dispatchEvent(new inner.MessageEvent("message", { data }));
	}

	terminate() {
		this.frame.remove();
	}
}

if (location.protocol === "file:")
	window.Worker = FrameWorker;
