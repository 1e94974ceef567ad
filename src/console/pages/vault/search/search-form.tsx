import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Lines, Select, TextField } from "../../../parts/field.tsx";
import { Icon } from "../../../parts/icons.tsx";
import { HALF_LIVES, hasOptions, MODES, MOST, type SearchMode, type SearchView } from "../address.ts";
import { readPairs } from "../pairs.ts";
import { AgentField } from "./agent-field.tsx";

/** The search form. Each search is a ledger entry, so text takes effect on submit; options apply at once. */
export function SearchForm({
  view,
  go,
  errors,
}: {
  readonly view: SearchView;
  readonly go: (view: SearchView) => void;
  /** Errors of the last search, by JSON pointer. */
  readonly errors: ReadonlyMap<string, string>;
}): JSX.Element {
  const [text, setText] = useState(view.text);
  const [filter, setFilter] = useState(view.filter);
  const [agent, setAgent] = useState(view.agent);
  const [filterError, setFilterError] = useState<string | undefined>(undefined);
  const [isOpen, setOpen] = useState(hasOptions(view));
  // The address may also change through a link or the back button.
  useEffect(() => setText(view.text), [view.text]);
  useEffect(() => setAgent(view.agent), [view.agent]);
  useEffect(() => {
    setFilter(view.filter);
    setFilterError(undefined);
    if (view.filter !== "") setOpen(true);
  }, [view.filter]);

  function send(change: Partial<SearchView> = {}): void {
    const { error } = readPairs(filter);
    setFilterError(error);
    if (error !== undefined) setOpen(true);
    else go({ ...view, text: text.trim(), filter: filter.trim(), agent: agent.trim(), ...change });
  }

  return (
    <search>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <div class="vault-ask">
          <TextField
            label="Search passages"
            type="search"
            placeholder="Search for"
            value={text}
            change={setText}
            error={errors.get("/query")}
          />
          <AgentField
            value={agent}
            change={(chosen) => {
              setAgent(chosen);
              send({ agent: chosen });
            }}
          />
          <div class="row vault-ask-do">
            <button type="submit" class="button-main">
              <Icon name="search" />
              Search
            </button>
            {view.text !== "" && (
              <button
                type="button"
                onClick={() => {
                  setText("");
                  send({ text: "" });
                }}
              >
                Clear
              </button>
            )}
          </div>
        </div>
        <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>Search options</summary>
          <div class="vault-options">
            <Select
              label="Search by"
              value={view.mode}
              options={MODES}
              change={(mode) => send({ mode: mode as SearchMode })}
            />
            <Select
              label="Maximum results"
              value={String(view.most)}
              options={MOST.map((most) => [most, most] as const)}
              change={(most) => send({ most: Number(most) })}
            />
            <Select
              label="Age"
              value={view.halfLife}
              options={HALF_LIVES}
              change={(halfLife) => send({ halfLife })}
            />
            <Lines
              label="Metadata"
              rows={2}
              placeholder={"lang=en\nyear=2026"}
              values={filter}
              change={setFilter}
              hint="One name=value per line. Put digits in quotes to search for text."
              error={filterError ?? errors.get("/filter")}
            />
          </div>
        </details>
      </form>
    </search>
  );
}
