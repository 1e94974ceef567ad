import { STATEMENT } from "../format/manifest.ts";
import type { ReportFacts } from "./facts.ts";
import { type Html, type HtmlPart, html } from "./html.ts";
import { count, counted, moment } from "./words.ts";

/** The first page: what the bundle covers, what it is and is not, and how to verify it. */
export function cover({ about, figures, oldestEntry }: ReportFacts): Html {
  const { range, counts, filters, tree, created_by: by, program } = about;
  const rows: [string, HtmlPart][] = [
    ["Period", periodOf(about, oldestEntry)],
    [
      "Entries",
      counts.total === 0
        ? "none were recorded in this period"
        : html`${count(range.first)} to ${count(range.last)}: ${count(counts.total)} in all, ${count(counts.included)} in this bundle, ${count(counts.withheld)} withheld by the filter`,
    ],
    ["Filter", filterText(filters)],
    ["Exported", html`${moment(about.created_at)} UTC, by ${personOf(by)}`],
    [
      "Program",
      `${program.name} ${program.version}${program.commit === undefined ? "" : ` (${program.commit})`}`,
    ],
    ["Ledger", html`<code>${about.origin}</code>`],
    ["Signed tree", html`${count(tree.size)} entries, root <code>${tree.root}</code>`],
    ["Signing key", html`<code>${about.key}</code>`],
  ];
  return html`<header class="cover">
<p class="kind">Evidence supporting human oversight</p>
<h1>Human oversight report</h1>
<p class="lead">Workspace <b>${about.workspace}</b>, ${periodOf(about, oldestEntry)}</p>
<dl>${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>\n`)}</dl>
<div class="boxes">
<section class="wide"><h2>What this is</h2>
<p>${STATEMENT}</p>
<p>The figures and tables are computed from the entries in <code>entries.ndjson</code>, unless stated otherwise. The gateway recorded these entries as events happened, in an append-only ledger.${
    counts.withheld > 0
      ? html` <b>${count(counts.withheld)} entries of the period are withheld by the filter</b> and are not counted in any figure. The hash of each is in <code>leaves.txt</code>, and each can be requested.`
      : null
  }${figures.unreadable > 0 ? html` <b>${counted(figures.unreadable, "entry is", "entries are")} not in the form that this program writes</b> and not counted in any figure.` : null}</p></section>
<section><h2>What it is not</h2>
<p>It is neither legal advice nor an audit. It does not show whether a system is a high-risk AI system, whether the people named here were competent, trained and free to decide, or whether their decisions were right. It does not cover anything that bypassed this gateway.</p></section>
<section><h2>How to check it</h2>
<p>With the program, without a server or a network: <code>gatehouse ledger verify --bundle FILE</code>, preferably with <code>--key</code> (the verifier key, obtained from the gateway's operator through another channel) and <code>--checkpoint</code> (one that was kept elsewhere). Or open <code>verify.html</code> in a browser. <code>manifest.json</code> contains the hash of this page, and <code>manifest.sig</code> signs the manifest.</p></section>
</div>
</header>`;
}

/** The period's start and end, as days if it consists of whole days. */
export function periodOf(
  { range, created_at: at }: ReportFacts["about"],
  oldestEntry: string | null,
): string {
  if (range.date !== undefined) return `${range.date} (UTC)`;
  const start = range.from ?? oldestEntry;
  return `${start === null ? "the beginning" : moment(start)} to ${moment(range.to ?? at)} UTC`;
}

function filterText(filters: ReportFacts["about"]["filters"]): string {
  const parts = Object.entries(filters).map(([name, value]) => `${name} is ${String(value)}`);
  return parts.length === 0 ? "none: every entry of the period is in this bundle" : parts.join(", ");
}

function personOf(by: ReportFacts["about"]["created_by"]): string {
  if (by.person === undefined) return by.actor;
  return `${by.person}${by.role === undefined ? "" : `, ${by.role}`} (${by.actor})`;
}
