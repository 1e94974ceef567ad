import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { IssuedToken } from "../../../../http/api.ts";
import { Code } from "../../../parts/code.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { snippetsOf } from "./snippets.ts";

/** Shows a new secret once, with examples of its use. The secret is gone when the dialog closes. */
export function SecretDialog({
  token,
  agent,
  model,
  former,
  close,
}: {
  readonly token: IssuedToken;
  /** The agent used in the examples. */
  readonly agent: string | null;
  /** The model used in the examples. */
  readonly model: string | null;
  /** How long the previous secret stays valid; null if it is invalid already; undefined if there was none. */
  readonly former?: string | null;
  readonly close: () => void;
}): JSX.Element {
  const [isLeaving, setLeaving] = useState(false);
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, []);
  return (
    <Dialog
      title={isLeaving ? "Have you saved the secret?" : `Secret of ${token.name}`}
      isWide
      // A second Escape returns to the secret.
      close={() => setLeaving(!isLeaving)}
    >
      {isLeaving ? (
        <Leaving back={() => setLeaving(false)} close={close} />
      ) : (
        <>
          <p class="note">
            <strong>It is shown only once.</strong> Store it where you keep secrets. Anyone who has it may do
            what the token may, until it is revoked{token.expires_at !== null && " or expires"}.
          </p>
          <Code label="Secret" text={token.secret} />
          {former !== undefined && (
            <p>
              {former === null
                ? "The previous secret is no longer valid."
                : `The previous secret stays valid for ${former}.`}
            </p>
          )}
          <Snippets token={token} agent={agent} model={model} />
          <div class="dialog-end">
            <button type="button" class="button-main" onClick={() => setLeaving(true)}>
              Done
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}

function Leaving({ back, close }: { readonly back: () => void; readonly close: () => void }): JSX.Element {
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), []);
  return (
    <>
      <p>It cannot be shown again. If you lose it, rotate the token to get a new one.</p>
      <div class="dialog-end">
        <button type="button" ref={first} onClick={back}>
          Show it again
        </button>
        <button type="button" class="button-main" onClick={close}>
          I have saved it
        </button>
      </div>
    </>
  );
}

function Snippets({
  token,
  agent,
  model,
}: {
  readonly token: IssuedToken;
  readonly agent: string | null;
  readonly model: string | null;
}): JSX.Element | null {
  const snippets = snippetsOf({ token, origin: location.origin, agent, model });
  const [chosen, choose] = useState(snippets[0]?.id);
  const snippet = snippets.find(({ id }) => id === chosen);
  if (!snippet) return null;
  return (
    <section class="stack-small" aria-label="Ready to use">
      <h3>Ready to use, with the secret filled in</h3>
      <fieldset class="settings-uses" aria-label="For">
        {snippets.map(({ id, name }) => (
          <button
            key={id}
            type="button"
            class="button-small settings-choice"
            aria-pressed={id === chosen}
            onClick={() => choose(id)}
          >
            {name}
          </button>
        ))}
      </fieldset>
      <p class="muted small">{snippet.hint}</p>
      <Code key={snippet.id} label={`${snippet.name} example`} text={snippet.text} />
    </section>
  );
}
