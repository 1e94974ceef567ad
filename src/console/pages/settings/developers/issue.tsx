import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { IssuedToken } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import { CloseButton, Dialog } from "../../../parts/dialog.tsx";
import { Select, TextField } from "../../../parts/field.tsx";
import { ProblemNote } from "../../../parts/problem.tsx";
import { Unsaved } from "../../../parts/unsaved.tsx";
import { useSession } from "../../../state/session.tsx";
import { useAction } from "../../../state/use-action.ts";
import { bodyOf, isSameDraft, LIFETIMES, newDraft, scopeErrors, type TokenDraft } from "./draft.ts";
import { ScopeFields } from "./scope-fields.tsx";

const MODES: readonly (readonly [TokenDraft["toolsMode"], string])[] = [
  ["all", "All tools"],
  ["search", "Two tools that search for and call the others"],
];

/** The form for a new token. Keeps the input if the server refuses it. */
export function IssueDialog({
  agents,
  agent,
  close,
  issued,
}: {
  /** Agents to choose from; undefined if the reader may not see them. */
  readonly agents: readonly string[] | undefined;
  readonly agent: string;
  readonly close: () => void;
  readonly issued: (token: IssuedToken) => void;
}): JSX.Element {
  const { session } = useSession();
  const [first] = useState(() => newDraft(session.agent ?? agent));
  const [draft, setDraft] = useState(first);
  const isDirty = !isSameDraft(draft, first);
  const action = useAction();
  const change = (part: Partial<TokenDraft>) => setDraft((before) => ({ ...before, ...part }));
  const errorAt = (path: string) => action.problem?.fields.get(path);

  async function issue(): Promise<void> {
    const token = await action.run(() => call("POST /v1/tokens", { body: bodyOf(draft) }));
    if (token) issued(token);
  }

  return (
    <Dialog title="Issue a token" close={close} isWide isDirty={isDirty}>
      <Unsaved isDirty={isDirty} />
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void issue();
        }}
      >
        <div class="form-columns">
          <TextField
            label="Name"
            value={draft.name}
            change={(name) => change({ name })}
            required
            placeholder="billing service"
            error={errorAt("/name")}
            hint="Who or what uses it. The ledger refers to the token by its id."
          />
          <AgentField
            agents={session.agent === null ? agents : [session.agent]}
            isFixed={session.agent !== null}
            draft={draft}
            change={change}
            error={errorAt("/agent")}
          />
        </div>
        <ScopeFields draft={draft} change={change} errors={scopeErrors(draft, action.problem)} />
        <div class="form-columns">
          <Select
            label="Expires"
            value={draft.lifetime}
            change={(lifetime) => change({ lifetime })}
            options={LIFETIMES}
            error={draft.lifetime === "other" ? undefined : errorAt("/expires_in")}
          />
          {draft.lifetime === "other" && (
            <TextField
              label="After"
              value={draft.otherLifetime}
              change={(otherLifetime) => change({ otherLifetime })}
              required
              placeholder="12h"
              error={errorAt("/expires_in")}
              hint="A number and s, m, h, d or w."
            />
          )}
          <Select
            label="Tools over MCP"
            value={draft.toolsMode}
            change={(mode) => change({ toolsMode: mode === "search" ? "search" : "all" })}
            options={MODES}
            hint="Many tools fill a model's context; searching keeps it small."
          />
        </div>
        <div class="form-columns">
          <TextField
            label="Person (optional)"
            value={draft.person}
            change={(person) => change({ person })}
            placeholder="Ada Lovelace"
            error={errorAt("/person")}
            hint="The person who holds it. Decisions are recorded under this name."
          />
          <TextField
            label="Role (optional)"
            value={draft.role}
            change={(role) => change({ role })}
            placeholder="duty overseer"
            error={errorAt("/role")}
            hint="The person's role, recorded in oversight entries."
          />
        </div>
        <ProblemNote problem={action.problem} />
        <div class="dialog-end">
          <CloseButton>Cancel</CloseButton>
          <button type="submit" class="button-main" disabled={action.isBusy}>
            Issue token
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function AgentField({
  agents,
  isFixed,
  draft,
  change,
  error,
}: {
  readonly agents: readonly string[] | undefined;
  readonly isFixed: boolean;
  readonly draft: TokenDraft;
  readonly change: (part: Partial<TokenDraft>) => void;
  readonly error: string | undefined;
}): JSX.Element {
  const field = { label: "Acts as", error, value: draft.agent, change: (agent: string) => change({ agent }) };
  if (!agents) {
    return <TextField {...field} placeholder="no agent" hint="An agent's name; empty: no agent." />;
  }
  const named = agents.includes(draft.agent) || draft.agent === "" ? agents : [draft.agent, ...agents];
  return (
    <Select
      {...field}
      disabled={isFixed}
      hint={
        isFixed
          ? "Your own token acts as this agent, and can only issue tokens for it."
          : "An agent's token is limited to the agent's memory, models and tools."
      }
      options={[
        ...(isFixed ? [] : [["", "No agent"] as const]),
        ...named.map((name) => [name, name] as const),
      ]}
    />
  );
}
