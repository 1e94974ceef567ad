import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { LedgerEntry } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import type { ApiProblem } from "../../api/problem.ts";
import { Empty } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { Rows } from "../../parts/rows.tsx";
import { plural } from "../../parts/text.tsx";
import { useNarrowScreen } from "../../state/use-narrow-screen.ts";
import { usePages } from "../../state/use-pages.ts";
import { EntryHead, EntryRow } from "./entry-row.tsx";
import { FilterForm } from "./filter-form.tsx";
import {
  FILTER_FIELDS,
  type FilterField,
  isFiltered,
  type LedgerFilter,
  ledgerAddress,
  NO_FILTER,
  queryOf,
} from "./filters.ts";
import type { OwnReads } from "./own-reads.ts";
import { useLedgerSize } from "./use-ledger-size.ts";

const PAGE = 100;
const ROW_HEIGHT = { wide: 38, narrow: 84 } as const;

/** The entries, newest first. New entries are counted, and shown when the reader asks for them. */
export function Entries({
  filter,
  ownReads,
}: {
  readonly filter: LedgerFilter;
  readonly ownReads: OwnReads;
}): JSX.Element {
  const { route } = useLocation();
  const isNarrow = useNarrowScreen();
  /** The newest entry at the time of the read. */
  const [newest, setNewest] = useState(0);
  const pages = usePages<LedgerEntry>(
    JSON.stringify(filter),
    async (cursor, signal) => {
      let own = 0;
      const page = await call("GET /v1/ledger", {
        query: {
          ...queryOf(filter),
          order: "desc",
          limit: PAGE,
          ...(cursor === undefined ? {} : { cursor }),
        },
        signal,
        answered: (headers) => {
          own = ownReads.note(headers);
        },
      });
      if (cursor === undefined) setNewest(isFiltered(filter) ? own : (page.data[0]?.seq ?? own));
      return page;
    },
    { onlyGrows: true },
  );
  const { items, problem, isLoading, isWhole, more, reload } = pages;
  const keyOf = useCallback((entry: LedgerEntry) => String(entry.seq), []);

  return (
    <div class="stack">
      <Filters
        filter={filter}
        items={items}
        isNarrow={isNarrow}
        problem={problem}
        apply={(wanted) => route(ledgerAddress(wanted))}
      />
      <Grown newest={newest} ownReads={ownReads} filter={filter} isBusy={isLoading} show={reload} />
      <ProblemNote problem={isAtFields(problem) ? null : problem} retry={reload} />
      {items.length > 0 ? (
        <div class={filter.outside_tasks === "" ? "stack-small" : "stack-small ledger-calls"}>
          {!isNarrow && <EntryHead />}
          <Rows
            key={newest}
            items={items}
            rowHeight={isNarrow ? ROW_HEIGHT.narrow : ROW_HEIGHT.wide}
            height="max(24rem, calc(100dvh - 14rem))"
            label="Entries, newest first"
            keyOf={keyOf}
            more={more}
          >
            {(entry) => <EntryRow entry={entry} />}
          </Rows>
          <p class="muted small" role="status">
            {isWhole
              ? `${plural(items.length, "entry", "entries")} in all.`
              : `${plural(items.length, "entry", "entries")} loaded. Scroll for older ones.`}
          </p>
        </div>
      ) : (
        problem === null && (isLoading || !isWhole ? <Loading /> : <NoEntries />)
      )}
    </div>
  );
}

function Filters({
  filter,
  items,
  isNarrow,
  problem,
  apply,
}: {
  readonly filter: LedgerFilter;
  readonly items: readonly LedgerEntry[];
  readonly isNarrow: boolean;
  readonly problem: ApiProblem | null;
  readonly apply: (filter: LedgerFilter) => void;
}): JSX.Element {
  const form = <FilterForm filter={filter} offered={offeredBy(items)} problem={problem} apply={apply} />;
  if (!isNarrow) return form;
  const set = Object.values(filter).filter((value) => value !== "").length;
  return (
    <details class="ledger-filters-folded" open={problem !== null && problem.fields.size > 0}>
      <summary>{set === 0 ? "Filters" : `Filters (${set} set)`}</summary>
      {form}
    </details>
  );
}

/** Whether every error is shown at a filter field. */
function isAtFields(problem: ApiProblem | null): boolean {
  const paths: readonly string[] = FILTER_FIELDS.map((field) => `/${field}`);
  const wrong = [...(problem?.fields.keys() ?? [])];
  return wrong.length > 0 && wrong.every((path) => paths.includes(path));
}

/** Suggestions taken from the loaded entries, without a call. */
function offeredBy(items: readonly LedgerEntry[]): Partial<Record<FilterField, readonly string[]>> {
  const of = (field: "agent" | "actor" | "action") =>
    [...new Set(items.flatMap((entry) => entry[field] ?? []))].sort();
  return { agent: of("agent"), actor: of("actor"), action: of("action") };
}

function Grown({
  newest,
  ownReads,
  filter,
  isBusy,
  show,
}: {
  readonly newest: number;
  readonly ownReads: OwnReads;
  readonly filter: LedgerFilter;
  readonly isBusy: boolean;
  readonly show: () => void;
}): JSX.Element {
  const size = useLedgerSize();
  const added = newest === 0 ? 0 : Math.max(0, size - newest - ownReads.count(newest, size));
  return (
    <div role="status" class={added > 0 ? "note row-between" : undefined}>
      {added > 0 && (
        <>
          <span>
            {plural(added, "new entry", "new entries")}
            {isFiltered(filter) && " in the ledger; some may match"}
          </span>
          <button type="button" class="button-small" disabled={isBusy} onClick={show}>
            {isFiltered(filter) ? "Search again" : "Show them"}
          </button>
        </>
      )}
    </div>
  );
}

function NoEntries(): JSX.Element {
  return (
    <Empty
      title="No entry matches"
      action={
        <a class="button" href={ledgerAddress(NO_FILTER)}>
          Show all entries
        </a>
      }
    >
      Enter complete names, with their exact spelling. Write an actor as in an entry, such as{" "}
      <code>token:tok_…</code> or <code>user:ada</code>.
    </Empty>
  );
}
