import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Connector } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { ApiProblem, asProblem } from "../../api/problem.ts";
import { TextArea } from "../../parts/field.tsx";
import { plural } from "../../parts/text.tsx";
import { Unsaved } from "../../parts/unsaved.tsx";
import { type McpDraft, mcpBody } from "./drafts.ts";
import { type PastedServer, readPaste } from "./paste.ts";
import { PastedItem } from "./pasted-item.tsx";
import { openFields } from "./placeholders.ts";
import { errorsOf, localErrors } from "./use-adding.ts";
import { useConnectors } from "./use-connectors.ts";

/** A pasted server, before and after it is added. */
export interface PastedEntry {
  readonly key: number;
  readonly title: string;
  readonly name: string;
  readonly notes: readonly string[];
  readonly inputs: PastedServer["inputs"];
  /** Null once added, so that no secret is kept. */
  readonly draft: McpDraft | null;
  readonly isBusy: boolean;
  readonly problem: ApiProblem | null;
  readonly errors: ReadonlyMap<string, string>;
  readonly connector: Connector | null;
}

/** How many connectors are added at once: each may take a while, and browsers open six connections to a host. */
const AT_ONCE = 3;
const NONE: ReadonlyMap<string, string> = new Map();
const EXAMPLE = `{
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "\${GITHUB_TOKEN}" }
    }
  }
}`;

/** Reads a configuration of Claude, Cursor, VS Code and similar clients, shows what it contains, and adds it. */
export function PasteServers(): JSX.Element {
  const connectors = useConnectors();
  const [text, setText] = useState("");
  const [error, setError] = useState<string | undefined>(undefined);
  const [refused, setRefused] = useState<readonly string[]>([]);
  const [items, setItems] = useState<readonly PastedEntry[]>([]);
  const now = useRef(items);
  now.current = items;
  const heading = useRef<HTMLHeadingElement>(null);
  const isRead = items.length > 0 || refused.length > 0;
  useEffect(() => {
    if (isRead) heading.current?.focus();
  }, [isRead]);

  function change(key: number, part: Partial<PastedEntry>): void {
    setItems((before) => before.map((item) => (item.key === key ? { ...item, ...part } : item)));
  }

  function read(): void {
    const pasted = readPaste(text, connectors.data?.map(({ name }) => name) ?? []);
    if ("message" in pasted) {
      setError(pasted.message);
      return;
    }
    // It may contain secrets, which are now in hidden fields.
    setText("");
    setError(undefined);
    setRefused(pasted.refused);
    setItems(
      pasted.servers.map((server, key) => ({
        ...server,
        key,
        isBusy: false,
        problem: null,
        errors: NONE,
        connector: null,
      })),
    );
  }

  function again(): void {
    setItems([]);
    setRefused([]);
  }

  async function add(key: number): Promise<void> {
    const item = now.current.find((one) => one.key === key);
    if (!item?.draft || item.isBusy) return;
    const drafted = mcpBody(item.name, "", item.draft);
    const errors = localErrors(drafted);
    change(key, { errors, problem: null, isBusy: errors.size === 0 });
    if (errors.size > 0 || !drafted.body) return;
    try {
      const connector = await call("POST /v1/connectors", { body: drafted.body });
      change(key, { isBusy: false, connector, draft: null });
    } catch (thrown) {
      const problem = asProblem(thrown);
      change(key, { isBusy: false, problem, errors: thrown instanceof ApiProblem ? errorsOf(thrown) : NONE });
    }
  }

  async function addAll(keys: readonly number[]): Promise<void> {
    const waiting = [...keys];
    const work = async () => {
      for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) await add(key);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  if (!isRead) {
    return (
      <form
        class="form"
        aria-label="Paste a configuration"
        onSubmit={(event) => {
          event.preventDefault();
          read();
        }}
      >
        <Unsaved isDirty={text.trim() !== ""} />
        <TextArea
          label="Configuration"
          isCode
          rows={14}
          placeholder={EXAMPLE}
          hint="The configuration of Claude, Cursor, VS Code or a similar client: mcpServers or servers, with or without the outer key. You can review it before anything is added."
          value={text}
          change={setText}
          error={error}
        />
        <div class="row">
          <button type="submit" class="button-main" disabled={text.trim() === ""}>
            Review
          </button>
        </div>
      </form>
    );
  }

  const left = items.filter(({ draft }) => draft !== null);
  const unfilled = left.filter(({ draft, inputs }) => draft && openFields(draft, inputs).size > 0).length;
  const ready = left.filter(
    (item) => item.draft && !item.isBusy && openFields(item.draft, item.inputs).size === 0,
  );
  const added = items.length - left.length;
  return (
    <div class="stack">
      <Unsaved isDirty={left.length > 0} />
      <div class="row-between">
        <h2 ref={heading} tabIndex={-1}>
          {plural(items.length, "server")} found
        </h2>
        <button type="button" onClick={again}>
          Paste another
        </button>
      </div>
      <p class="muted" role="status">
        {added > 0 && `${added} added. `}
        {unfilled > 0 && `${unfilled} with missing values.`}
      </p>
      {refused.length > 0 && (
        <div class="problem" role="alert">
          <strong>Left out</strong>
          <ul>
            {refused.map((reason) => (
              <li key={reason} class="break">
                {reason}
              </li>
            ))}
          </ul>
        </div>
      )}
      <div class="grid pasted-list">
        {items.map((item) => (
          <PastedItem
            key={item.key}
            item={item}
            change={(part) => change(item.key, part)}
            add={() => void add(item.key)}
            leave={() => setItems((before) => before.filter(({ key }) => key !== item.key))}
          />
        ))}
      </div>
      {left.length > 1 && (
        <div class="row">
          <button
            type="button"
            class="button-main"
            disabled={ready.length === 0}
            onClick={() => void addAll(ready.map(({ key }) => key))}
          >
            Add {plural(ready.length, "server")} with nothing left to fill in
          </button>
        </div>
      )}
    </div>
  );
}
