import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { addressOf } from "../../api/client.ts";
import { Check, TextField } from "../../parts/field.tsx";
import { Card } from "../../parts/page.tsx";
import {
  FILTER_FIELDS,
  isFiltered,
  type LedgerFilter,
  NO_FILTER,
  queryOf,
  withClientCalls,
} from "./filters.ts";
import { zoneName } from "./local-time.ts";
import { TimeField } from "./period-fields.tsx";

/** Downloads of the ledger or a part of it, as plain links. */
export function ExportTab({ filter }: { readonly filter: LedgerFilter }): JSX.Element {
  const [chosen, setChosen] = useState(filter);
  const change = (field: keyof LedgerFilter) => (value: string) =>
    setChosen((before) => ({ ...before, [field]: value }));
  const isBackwards = chosen.from !== "" && chosen.to !== "" && chosen.from >= chosen.to;
  const wrongTime = isBackwards ? "It must be later than the start." : undefined;
  const tierIsWrong = chosen.tier !== "" && !/^[1-9]\d*$/.test(chosen.tier);
  const isWrong = isBackwards || tierIsWrong;
  return (
    <div class="stack">
      <Card
        title="What to export"
        actions={
          isFiltered(chosen) && (
            <button type="button" class="button-small" onClick={() => setChosen(NO_FILTER)}>
              The whole ledger
            </button>
          )
        }
      >
        <div class="ledger-filters">
          <TimeField label="From" value={chosen.from} change={change("from")} />
          <TimeField label="To (before)" value={chosen.to} change={change("to")} error={wrongTime} />
          {FILTER_FIELDS.filter((field) => field !== "from" && field !== "to").map((field) => (
            <TextField
              key={field}
              label={field.charAt(0).toUpperCase() + field.slice(1)}
              value={chosen[field]}
              change={change(field)}
              error={field === "tier" && tierIsWrong ? "A tier is a number, such as 1." : undefined}
            />
          ))}
        </div>
        <Check
          label="Model calls outside tasks"
          checked={chosen.outside_tasks === "true" && chosen.action === "model.call"}
          change={(isOn) => setChosen((before) => withClientCalls(before, isOn))}
        />
        <p class="muted small">
          {isFiltered(chosen)
            ? "Only entries that match all of these."
            : "The whole ledger, from its first entry."}{" "}
          Times are in your zone, {zoneName()}, and are sent in UTC. Each export is recorded in the ledger.
        </p>
      </Card>
      <div class="ledger-exports">
        <Article14 chosen={chosen} isWrong={isWrong} />
        <Format
          title="CSV"
          format="csv"
          chosen={chosen}
          isWrong={isWrong}
          text="A table for spreadsheets: one row per entry, with columns for people’s decisions. It proves nothing by itself."
        />
        <Format
          title="NDJSON"
          format="ndjson"
          chosen={chosen}
          isWrong={isWrong}
          text="For programs: one entry per line, with all fields as in REST. It proves nothing by itself."
        />
      </div>
    </div>
  );
}

function Article14({
  chosen,
  isWrong,
}: {
  readonly chosen: LedgerFilter;
  readonly isWrong: boolean;
}): JSX.Element {
  const { task, outside_tasks: outside, ...rest } = chosen;
  return (
    <Card title="Article 14 bundle">
      <p>
        Evidence supporting human oversight under the EU AI Act, in a zip that can be checked without this
        server:
      </p>
      <ul class="ledger-list">
        <li>
          <code>report.html</code> for readers: who could oversee, what they decided, and how quickly
        </li>
        <li>
          <code>entries.ndjson</code>, the exact bytes that were hashed, and <code>leaves.txt</code>, the hash
          of every entry in the period, so filtered-out entries are still counted
        </li>
        <li>
          <code>oversight.csv</code>, every decision by a person, and <code>erasures.ndjson</code>
        </li>
        <li>
          <code>checkpoint.txt</code>, <code>key.txt</code> and a signed manifest
        </li>
        <li>
          <code>verify.html</code>, which verifies all of it in a browser
        </li>
      </ul>
      {task !== "" && <p class="muted">A bundle cannot be limited to one task, so this filter is ignored.</p>}
      {outside !== "" && (
        <p class="muted">A bundle cannot leave out tasks’ calls, so this filter is ignored.</p>
      )}
      <Download
        title="Article 14 bundle"
        format="article14"
        filter={{ ...rest, task: "", outside_tasks: "" }}
        isWrong={isWrong}
      />
    </Card>
  );
}

function Format({
  title,
  format,
  text,
  chosen,
  isWrong,
}: {
  readonly title: string;
  readonly format: "csv" | "ndjson";
  readonly text: string;
  readonly chosen: LedgerFilter;
  readonly isWrong: boolean;
}): JSX.Element {
  return (
    <Card title={title}>
      <p>{text}</p>
      <Download title={title} format={format} filter={chosen} isWrong={isWrong} />
    </Card>
  );
}

function Download({
  title,
  format,
  filter,
  isWrong,
}: {
  readonly title: string;
  readonly format: "article14" | "csv" | "ndjson";
  readonly filter: LedgerFilter;
  readonly isWrong: boolean;
}): JSX.Element {
  if (isWrong) return <p class="muted">Correct the marked fields first.</p>;
  return (
    <div>
      <a
        class={format === "article14" ? "button button-main" : "button"}
        href={addressOf("/v1/ledger", {}, { format, ...queryOf(filter) })}
        download
      >
        Download<span class="unseen"> {title}</span>
      </a>
    </div>
  );
}
