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
<p>The figures and tables are counted from the entries in <code>entries.ndjson</code>, unless they say otherwise. They are as the gateway recorded them at the time, in a ledger that can only be added to.${
    counts.withheld > 0
      ? html` <b>${count(counts.withheld)} entries of the period are withheld by the filter</b> and are in no figure; each is named in <code>leaves.txt</code> and can be asked for.`
      : null
  }${figures.unreadable > 0 ? html` <b>${counted(figures.unreadable, "entry is", "entries are")} not of the form that this program writes</b>, and in no figure.` : null}</p></section>
<section><h2>What it is not</h2>
<p>It is no legal advice and no audit. It does not say whether a system is a high-risk AI system, whether the people named here were competent, trained and free to decide, or whether their decisions were right. What did not go through this gateway is not in it.</p></section>
<section><h2>How to check it</h2>
<p>With the program, no server and no network: <code>gatehouse ledger verify --bundle FILE</code>, best with <code>--key</code> (the verifier key, got from who runs the gateway by another way) and <code>--checkpoint</code> (one that was kept elsewhere). Or open <code>verify.html</code> in a browser. This page is vouched for by <code>manifest.json</code>, and that by <code>manifest.sig</code>.</p></section>
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
