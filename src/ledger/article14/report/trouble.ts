import type { CappedTally } from "../figures/capped.ts";
import type { EventTally } from "../figures/events.ts";
import type { ReportEntryFields } from "../format/entry.ts";
import { place, type ReportFacts } from "./facts.ts";
import { type Html, type HtmlPart, html, table } from "./html.ts";
import { brief, count, counted, moment } from "./words.ts";

const NUMBER = { kind: "number" } as const;
const TIME = { kind: "time" } as const;
const TALLY_COLUMNS = [
  { name: "Action" },
  { name: "Reason" },
  { name: "Times", ...NUMBER },
  { name: "First", ...TIME },
  { name: "Last", ...TIME },
];

/** What was refused, what failed, and what calls for a review. */
export function troubleSection(facts: ReportFacts): Html {
  const { refusals, unserved, failures, incidents, counts } = facts.figures.events;
  const where = place(facts);
  return html`<section><h2>5. Refusals, failures and incidents</h2>
<p>Limits of the workspace: exceeded in ${counted(counts.limits, "recorded minute")}. Callers that failed to authenticate: ${counted(counts.unknownCallers, "record")}, each for one source in one minute. Entries recorded late, because the ledger could not be written at the time: ${count(counts.late)}.</p>
${table({
  caption: "Refused by policy, by reason",
  columns: TALLY_COLUMNS,
  rows: tallyRows(refusals),
  empty: `No refusal by policy was recorded ${where}.`,
})}
${table({
  caption: "Requests that could not be served, by reason",
  columns: TALLY_COLUMNS,
  rows: tallyRows(unserved),
  empty: `No request that could not be served was recorded ${where}.`,
})}
${table({
  caption: "Failed, by reason",
  columns: TALLY_COLUMNS,
  rows: tallyRows(failures),
  empty: `No failure was recorded ${where}.`,
})}
${table({
  caption:
    "Incidents concerning the record itself: foreign writes, a moved file, changes of the signing key, late records",
  columns: [
    { name: "Entry", ...NUMBER },
    { name: "Time", ...TIME },
    { name: "What" },
    { name: "Outcome" },
    { name: "Detail" },
  ],
  rows: incidents.items.map(incidentRow),
  empty: `No incident concerning the record itself was recorded ${where}.`,
  note: incidents.left === 0 ? undefined : `${count(incidents.left)} more in entries.ndjson.`,
})}
</section>`;
}

function tallyRows(tallies: CappedTally<EventTally>): HtmlPart[][] {
  const row = (action: string, code: string, tally: EventTally) => [
    action,
    code === "" ? "–" : brief(code, 60),
    count(tally.count),
    moment(tally.first),
    moment(tally.last),
  ];
  const rows = tallies
    .sorted(({ count: times }) => times)
    .map(([key, tally]) => {
      const at = key.indexOf(" ");
      return row(key.slice(0, at), key.slice(at + 1), tally);
    });
  return tallies.others === null ? rows : [...rows, row("others", "", tallies.others)];
}

function incidentRow({ seq, ts, action, outcome, code, detail = {} }: ReportEntryFields): HtmlPart[] {
  const said = Object.entries(detail)
    .filter(([, value]) => typeof value === "string" || typeof value === "number")
    .map(([key, value]) => `${key}: ${brief(String(value), 48)}`);
  return [
    count(seq),
    moment(ts),
    action,
    `${outcome}${code === undefined ? "" : `: ${brief(code, 40)}`}`,
    said.join("; ") || "–",
  ];
}
