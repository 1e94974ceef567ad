import type { ReportFacts } from "./facts.ts";
import { actorName } from "./holders.ts";
import { type Html, html, table } from "./html.ts";
import { brief, count, counted, day, moment } from "./words.ts";

const NUMBER = { kind: "number" } as const;
const TIME = { kind: "time" } as const;
const DAY_MS = 86_400_000;
/** Six calendar months at their longest. Fewer days may be less than six months. */
const SIX_MONTHS_DAYS = 184;

/** How long records are kept, what was erased, and what proves the records. */
export function recordSection(facts: ReportFacts): Html {
  const { about, erasures, checkpoints, overseers } = facts;
  return html`<section><h2>6. The record itself</h2>
<p>${retentionText(facts)}</p>
${table({
  caption: "Erased texts of this period's entries",
  columns: [{ name: "Entry", ...NUMBER }, { name: "Time", ...TIME }, { name: "By" }, { name: "Erased" }],
  rows: erasures.items.map(({ seq, ts, actor, payloads, up_to: upTo }) => [
    count(seq),
    moment(ts),
    actorName(actor, overseers),
    upTo === undefined
      ? brief((payloads ?? []).join(", "), 160)
      : `all prompts, outputs and arguments up to entry ${count(upTo)}, because of their age`,
  ]),
  empty: "No text of this period's entries was erased before the export.",
  note: erasures.left === 0 ? undefined : `${count(erasures.left)} more in erasures.ndjson.`,
})}
${table({
  caption: "The latest checkpoints that the gateway signed on schedule",
  columns: [
    { name: "Entries", ...NUMBER },
    { name: "Last entry", ...TIME },
  ],
  rows: checkpoints.map(({ size, at }) => [count(size), moment(at)]),
  empty: "No stored checkpoint covers entries of this period. This bundle has its own checkpoint.",
})}
<p>The bundle's own checkpoint covers the first ${count(about.tree.size)} entries of the ledger. Changes of the signing key up to that entry, with proof that the former key vouches for the new one: ${count(about.key_changes.length)}.</p>
</section>`;
}

/** Describes the retention, without judging it. */
export function retentionText({ about, oldestEntry }: ReportFacts): Html {
  const days = about.retention.payload_days;
  const kept =
    oldestEntry === null
      ? null
      : Math.floor((Date.parse(about.created_at) - Date.parse(oldestEntry)) / DAY_MS);
  return html`Entries are never deleted: ${
    oldestEntry === null || kept === null
      ? "this ledger has none yet"
      : html`the oldest in this ledger was written on ${day(oldestEntry)}, ${count(kept)} days before the export`
  }. Prompts, outputs and arguments are kept separately, for ${counted(days, "day")}, and can be erased earlier. Entries contain salted hashes of them, and each erasure is recorded in an entry.${
    days < SIX_MONTHS_DAYS
      ? html` For these texts that is <b>less than six months</b>: the provider or deployer must judge whether they belong to the logs that have to be kept longer.`
      : null
  }`;
}
