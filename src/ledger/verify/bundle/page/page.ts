import { sha256 } from "../../../tree-hash.ts";
import { builtScript, licences } from "./build.ts" with { type: "macro" };
import { PAGE_STYLE } from "./style.ts";

// Inlined when the program is built. Sequences that would end a script in HTML are escaped.
const SCRIPT: string = builtScript().replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");

/** Sequences that would end a comment are shortened. */
const LICENCES: string = licences().replace(/-{2,}/g, "-");

/** `verify.html`: checks a bundle in a browser, opened as a file, without a network. Only its own script runs. */
export function verifyPage(): string {
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(SCRIPT)}'`,
    `style-src '${hashOf(PAGE_STYLE)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Check a bundle of evidence</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<h1>Check a bundle of evidence</h1>
<p>This page checks an Article 14 bundle made by a Gatehouse: that no entry in it was changed, added, moved or removed since it was recorded, and who signed it. It runs entirely on this computer and sends nothing.</p>
<p class="warning"><b>A page that came with a bundle is only as trustworthy as whoever gave it to you.</b> For an independent check, use the program itself, obtained from elsewhere: <code>gatehouse ledger verify --bundle FILE</code>.</p>
<div id="form" hidden>
<label class="drop" id="drop">Drop the bundle here, or choose it (the whole zip file). <b id="chosen"></b>
<input type="file" id="file" accept=".zip,application/zip"></label>
<details><summary>Key and checkpoints obtained from elsewhere</summary>
<label for="key">Verifier key (as <code>gatehouse ledger key</code> prints it)</label>
<textarea id="key" spellcheck="false" autocomplete="off"></textarea>
<label for="checkpoint">Checkpoints (signed notes, one after another)</label>
<textarea id="checkpoint" spellcheck="false" autocomplete="off"></textarea>
</details>
<button type="button" id="check" disabled>Check</button>
</div>
<div id="result" class="result" role="status" aria-live="polite" hidden></div>
<noscript><p class="warning">JavaScript is disabled in this browser, so this page cannot check anything.</p></noscript>
<!--
The script below includes third-party code under these licences:

${LICENCES}
-->
<script type="module">${SCRIPT}</script>
</body>
</html>
`;
}

function hashOf(text: string): string {
  return `sha256-${sha256(new TextEncoder().encode(text)).toBase64()}`;
}
