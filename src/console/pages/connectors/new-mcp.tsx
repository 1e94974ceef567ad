import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Connector } from "../../../http/api.ts";
import { ProblemNote } from "../../parts/problem.tsx";
import { Unsaved } from "../../parts/unsaved.tsx";
import { CommonFields } from "./common-fields.tsx";
import { emptyMcp, isMcpTyped, type McpDraft, mcpBody } from "./drafts.ts";
import { McpFields } from "./mcp-fields.tsx";
import { useAdding } from "./use-adding.ts";
import { useFirstFault } from "./use-first-fault.ts";

/** Adds an MCP server: a program on this machine, or a server over HTTP. */
export function NewMcp({
  type,
  added,
}: {
  readonly type: "stdio" | "http";
  readonly added: (connector: Connector) => void;
}): JSX.Element {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState("");
  const [draft, setDraft] = useState<McpDraft>(() => emptyMcp(type));
  const { action, errors, add } = useAdding();
  const form = useFirstFault(errors);
  return (
    <form
      ref={form}
      class="form"
      aria-label={type === "stdio" ? "Add a program" : "Add a server"}
      onSubmit={async (event) => {
        event.preventDefault();
        const connector = await add(mcpBody(name, scopes, draft));
        if (connector) added(connector);
      }}
    >
      <Unsaved isDirty={name !== "" || scopes !== "" || isMcpTyped(draft)} />
      {type === "stdio" && (
        <p class="note">
          The program runs on the server's machine until the connector is removed. Add only programs you
          trust.
        </p>
      )}
      <CommonFields
        name={name}
        scopes={scopes}
        changeName={setName}
        changeScopes={setScopes}
        errors={errors}
      />
      <McpFields draft={draft} change={setDraft} errors={errors} />
      <ProblemNote problem={action.problem} />
      <div class="row">
        <button type="submit" class="button-main" disabled={action.isBusy}>
          {action.isBusy ? "Reading its tools …" : "Add the connector"}
        </button>
        <span class="muted small">It is added even if it cannot be reached yet; refresh it later.</span>
      </div>
    </form>
  );
}
