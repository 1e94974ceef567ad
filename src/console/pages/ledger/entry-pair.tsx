import type { JSX } from "preact";
import type { LedgerEntry } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Card } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { countText, durationText, plural, Time } from "../../parts/text.tsx";
import { usePair } from "./use-pair.ts";

/** An intent and its outcome side by side. Single entries have no other half. */
export function EntryPair({ entry }: { readonly entry: LedgerEntry }): JSX.Element | null {
  return entry.phase === "single" ? null : <Pair entry={entry} />;
}

function Pair({ entry }: { readonly entry: LedgerEntry }): JSX.Element {
  const { other, isLoading, problem, looked, further } = usePair(entry);
  const [intent, outcome] = entry.phase === "intent" ? [entry, other] : [other, entry];
  return (
    <Card title="Intent and outcome">
      <ol class="entry-pair">
        {intent && <Half entry={intent} isThis={intent === entry} name="Intent" />}
        {outcome && <Half entry={outcome} isThis={outcome === entry} name="Outcome" />}
      </ol>
      {intent && outcome && (
        <p class="muted small">
          Between them: {durationText(Math.max(0, Date.parse(outcome.ts) - Date.parse(intent.ts)))}
        </p>
      )}
      <ProblemNote problem={problem} />
      {other === null && isLoading && <Loading />}
      {other === null && !isLoading && problem === null && (
        <p class="muted">
          {looked === 0
            ? "There are no later entries of its kind: it may still be in progress."
            : `No outcome among the ${plural(looked, "later entry", "later entries")} of its kind${further ? "" : ": it may still be in progress"}.`}
        </p>
      )}
      {further && (
        <div>
          <button type="button" class="button-small" onClick={further}>
            Search further
          </button>
        </div>
      )}
    </Card>
  );
}

function Half({
  entry,
  isThis,
  name,
}: {
  readonly entry: LedgerEntry;
  readonly isThis: boolean;
  readonly name: string;
}): JSX.Element {
  const text = `${name}: entry ${countText(entry.seq)}`;
  return (
    <li class="row" aria-current={isThis ? "true" : undefined}>
      {isThis ? <strong>{text}</strong> : <a href={`/console/ledger/${entry.seq}`}>{text}</a>}
      <Status status={entry.outcome} />
      {entry.code !== null && <code>{entry.code}</code>}
      <span class="muted">
        <Time at={entry.ts} />
      </span>
    </li>
  );
}
