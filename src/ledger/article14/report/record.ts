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
      : `all prompts, outputs and arguments up to entry ${count(upTo)}, for their age`,
  ]),
  empty: "No text of this period's entries was erased up to the export.",
  note: erasures.left === 0 ? undefined : `${count(erasures.left)} more in erasures.ndjson.`,
})}
${table({
  caption: "The last checkpoints that the gateway signed by itself",
  columns: [
    { name: "Entries", ...NUMBER },
    { name: "Last entry", ...TIME },
  ],
  rows: checkpoints.map(({ size, at }) => [count(size), moment(at)]),
  empty: "None is stored that covers entries of this period; this bundle has one of its own.",
})}
<p>The bundle's own checkpoint covers the first ${count(about.tree.size)} entries of the ledger. Changes of the signing key up to then, in which the former key vouches for the new one: ${count(about.key_changes.length)}.</p>
</section>`;
}

/** What the retention amounts to, stated without judgement. */
export function retentionText({ about, oldestEntry }: ReportFacts): Html {
  const days = about.retention.payload_days;
  const kept =
    oldestEntry === null
      ? null
      : Math.floor((Date.parse(about.created_at) - Date.parse(oldestEntry)) / DAY_MS);
  return html`Entries are never deleted: ${
    oldestEntry === null || kept === null
      ? "the ledger has none yet"
      : html`the oldest of this ledger is of ${day(oldestEntry)}, ${count(kept)} days before the export`
  }. Prompts, outputs and arguments are kept apart from them, for ${counted(days, "day")}, and can be erased before that; entries hold salted hashes of them, and each erasure is an entry.${
    days < SIX_MONTHS_DAYS
      ? html` For these texts that is <b>less than six months</b>: whether these texts belong to the logs that have to be kept for longer is for the provider or deployer to judge.`
      : null
  }`;
}
