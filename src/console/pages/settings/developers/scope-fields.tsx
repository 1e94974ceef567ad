import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { Check, Lines } from "../../../parts/field.tsx";
import { useSession } from "../../../state/session.tsx";
import { Choice } from "../choice.tsx";
import { type TokenDraft, takesDefault } from "./draft.ts";
import { ADMIN, AGENT_DEFAULT, SCOPE_WORDS, SCOPES } from "./scopes.ts";

/** The token's rights. Scopes that the reader does not have cannot be granted. */
export function ScopeFields({
  draft,
  change,
  errors,
}: {
  readonly draft: TokenDraft;
  readonly change: (part: Partial<TokenDraft>) => void;
  readonly errors: { readonly scopes: string | undefined; readonly tools: string | undefined };
}): JSX.Element {
  const { session } = useSession();
  const canDefault = AGENT_DEFAULT.every((scope) => holds(session.scopes, scope));
  return (
    <>
      {draft.agent !== "" && (
        <Choice
          label="What it may do"
          value={draft.grants}
          change={(grants) => change({ grants })}
          options={[
            {
              value: "default",
              name: "An agent token's default scopes",
              hint: canDefault
                ? "Run and see this agent's tasks, search its part of the vault, see connectors, call its tools."
                : "Your own token lacks some of these scopes, so the request will be refused.",
            },
            {
              value: "chosen",
              name: "Only the scopes chosen here",
              hint: "They can only narrow what the agent may do.",
            },
          ]}
        />
      )}
      {!takesDefault(draft) && (
        <>
          <ScopeList draft={draft} change={change} error={errors.scopes} />
          <Lines
            label="Tools"
            values={draft.tools}
            change={(tools) => change({ tools })}
            rows={3}
            placeholder="vault.*"
            error={errors.tools}
            disabled={draft.scopes.has(ADMIN)}
            hint={
              <>
                The tools it may call directly, one pattern per line: <code>vault.*</code>,{" "}
                <code>github.search_*</code>, or <code>*</code> for all.
              </>
            }
          />
        </>
      )}
    </>
  );
}

function ScopeList({
  draft: { agent, scopes },
  change,
  error,
}: {
  readonly draft: TokenDraft;
  readonly change: (part: Partial<TokenDraft>) => void;
  readonly error: string | undefined;
}): JSX.Element {
  const { session } = useSession();
  const id = useId();
  const isAll = scopes.has(ADMIN);
  const toggle = (scope: string, isOn: boolean) => {
    const chosen = new Set(scopes);
    if (isOn) chosen.add(scope);
    else chosen.delete(scope);
    change({ scopes: chosen });
  };
  const notHeld = "Your own token lacks this scope";
  return (
    <fieldset aria-describedby={error === undefined ? undefined : id}>
      <legend>{agent === "" ? "What it may do" : "Scopes"}</legend>
      {error !== undefined && (
        <span class="settings-error" id={id}>
          {error}
        </span>
      )}
      <div class="settings-scopes">
        {SCOPES.map((scope) => {
          const isHeld = holds(session.scopes, scope);
          return (
            <Check
              key={scope}
              label={<code>{scope}</code>}
              hint={isHeld ? SCOPE_WORDS[scope] : `${SCOPE_WORDS[scope]}. ${notHeld}.`}
              checked={isAll || scopes.has(scope)}
              disabled={isAll || !isHeld}
              change={(isOn) => toggle(scope, isOn)}
            />
          );
        })}
        <Check
          label={<code>{ADMIN}</code>}
          hint={
            holds(session.scopes, ADMIN)
              ? "All of these, every tool, and metrics. For administrators of this workspace"
              : `All of these. ${notHeld}.`
          }
          checked={isAll}
          disabled={!holds(session.scopes, ADMIN)}
          change={(isOn) => change({ scopes: new Set(isOn ? [ADMIN] : []) })}
        />
      </div>
    </fieldset>
  );
}

function holds(held: readonly string[], scope: string): boolean {
  return held.includes(ADMIN) || held.includes(scope);
}
