import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApiProblem } from "../../api/problem.ts";
import { Check, TextField } from "../../parts/field.tsx";
import {
  FILTER_FIELDS,
  type FilterField,
  isFiltered,
  type LedgerFilter,
  NO_FILTER,
  withClientCalls,
} from "./filters.ts";
import { zoneName } from "./local-time.ts";
import { TimeField } from "./period-fields.tsx";

const LABELS: Readonly<Record<FilterField, string>> = {
  agent: "Agent",
  actor: "Actor",
  action: "Action",
  task: "Task",
  tier: "Tier",
  from: "From",
  to: "To (before)",
};

/** The ledger's filters. Applied on submit, because each query is a ledger entry. */
export function FilterForm({
  filter,
  apply,
  offered,
  problem,
}: {
  readonly filter: LedgerFilter;
  readonly apply: (filter: LedgerFilter) => void;
  /** Suggestions by field. */
  readonly offered: Readonly<Partial<Record<FilterField, readonly string[]>>>;
  readonly problem: ApiProblem | null;
}): JSX.Element {
  const [draft, setDraft] = useState(filter);
  const shown = JSON.stringify(filter);
  // The address may change without this form, through links and the back button.
  useEffect(() => setDraft(JSON.parse(shown) as LedgerFilter), [shown]);

  return (
    <search>
      <form
        class="ledger-filters"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          apply(trimmed(draft));
        }}
      >
        {FILTER_FIELDS.map((field) => {
          const common = {
            label: LABELS[field],
            value: draft[field],
            change: (value: string) => setDraft((before) => ({ ...before, [field]: value })),
            error: problem?.fields.get(`/${field}`),
          };
          if (field === "from" || field === "to") return <TimeField key={field} {...common} />;
          const list = offered[field];
          return <TextField key={field} {...common} {...(list ? { list } : {})} />;
        })}
        <div class="ledger-filters-end">
          <Check
            label="Model calls outside tasks"
            hint="Calls that clients make themselves, through the APIs of OpenAI and Anthropic."
            checked={draft.outside_tasks === "true" && draft.action === "model.call"}
            change={(isOn) => setDraft((before) => withClientCalls(before, isOn))}
          />
        </div>
        <div class="row ledger-filters-end">
          <button type="submit" class="button-main">
            Apply
          </button>
          <button
            type="button"
            disabled={!isFiltered(filter) && !isFiltered(draft)}
            onClick={() => {
              setDraft(NO_FILTER);
              apply(NO_FILTER);
            }}
          >
            Clear
          </button>
          <span class="muted small">Times are in your zone, {zoneName()}.</span>
        </div>
      </form>
    </search>
  );
}

function trimmed(filter: LedgerFilter): LedgerFilter {
  const result = { ...filter };
  for (const field of FILTER_FIELDS) result[field] = filter[field].trim();
  return result;
}
