import type { JSX } from "preact";
import { Badge, Status } from "../../parts/badge.tsx";
import { TextField } from "../../parts/field.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { plural } from "../../parts/text.tsx";
import { McpFields } from "./mcp-fields.tsx";
import { nameError } from "./names.ts";
import type { PastedEntry } from "./paste-servers.tsx";
import { openFields } from "./placeholders.ts";

const TYPES = { stdio: "program", http: "Streamable HTTP", sse: "HTTP+SSE" } as const;

/** A server of a pasted configuration: its fields, or its result. */
export function PastedItem({
  item,
  change,
  add,
  leave,
}: {
  readonly item: PastedEntry;
  readonly change: (part: Partial<PastedEntry>) => void;
  readonly add: () => void;
  readonly leave: () => void;
}): JSX.Element {
  const { title, name, notes, draft, connector, isBusy, problem, errors, inputs } = item;
  if (draft === null) return <Added item={item} />;
  const open = openFields(draft, inputs);
  return (
    <form
      class="pasted"
      aria-label={`Server ${title}`}
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <div class="row-between">
        <h3 class="break">{title}</h3>
        <span class="row">
          <Badge tone="plain" text={TYPES[draft.type]} />
          {open.size > 0 && <Badge tone="warn" text="incomplete" />}
        </span>
      </div>
      {notes.map((note) => (
        <p key={note} class="muted small break">
          {note}
        </p>
      ))}
      <TextField
        label="Name"
        required
        value={name}
        change={(text) => change({ name: text })}
        error={errors.get("/name") ?? nameError(name)}
      />
      <McpFields draft={draft} change={(next) => change({ draft: next })} errors={errors} open={open} />
      <ProblemNote problem={connector ? null : problem} />
      <div class="row">
        <button type="submit" disabled={isBusy}>
          {isBusy ? "Reading its tools …" : open.size > 0 ? "Add as it is" : "Add it"}
        </button>
        <button type="button" class="button-plain" disabled={isBusy} onClick={leave}>
          Leave it out
        </button>
      </div>
    </form>
  );
}

function Added({ item: { title, connector } }: { readonly item: PastedEntry }): JSX.Element | null {
  if (!connector) return null;
  const { name, status, tools, error } = connector;
  return (
    <section class="pasted" aria-label={`Server ${title}`}>
      <div class="row-between">
        <h3 class="break">
          <a href={`/console/connectors/${encodeURIComponent(name)}`}>{name}</a>
        </h3>
        <Status status={status} />
      </div>
      <p role="status">Added, with {plural(tools.length, "tool")}.</p>
      {error !== undefined && <p class="muted break">{error}</p>}
    </section>
  );
}
