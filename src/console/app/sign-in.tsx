import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { TextField } from "../parts/field.tsx";
import { Mark } from "../parts/icons.tsx";
import { ProblemNote } from "../parts/problem.tsx";
import { type Action, useAction } from "../state/use-action.ts";
import { onLink, spendLink } from "./link.ts";

/**
 * Signs in with a token, or with the one-time link that the first start prints. The secret is sent once and answered
 * with a cookie that scripts cannot read; the page keeps nothing of it.
 */
export function SignIn({
  signedIn,
  isAgain = false,
}: {
  readonly signedIn: () => Promise<void>;
  /** Whether the session has expired while the user's work is kept behind this page. */
  readonly isAgain?: boolean;
}): JSX.Element {
  const [token, setToken] = useState("");
  const action = useAction();
  const { run } = action;

  async function signIn(secret: string): Promise<void> {
    await run(async () => {
      await call("POST /v1/session", { headers: { authorization: `Bearer ${secret.trim()}` } });
      setToken("");
      await signedIn();
    });
  }

  const title = isAgain ? "Sign in again" : "Sign in";
  useEffect(() => {
    document.title = `${title} · Gatehouse`;
    const useLink = () => {
      const secret = spendLink();
      if (secret !== null) void signIn(secret);
    };
    useLink();
    return onLink(useLink);
    // Only when the page is opened.
  }, []);

  return (
    <div class="sign-in">
      <main class="stack">
        <div class="row">
          <span class="brand">
            <Mark />
            Gatehouse
          </span>
        </div>
        <h1>{title}</h1>
        {isAgain && <p>Your session has ended. What you have typed is kept: sign in with the same token.</p>}
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void signIn(token);
          }}
        >
          <TextField
            label="Token"
            type="password"
            autocomplete="off"
            placeholder="gth_…"
            required
            value={token}
            change={setToken}
            hint="The server's first start printed one, or wrote it to admin.token in its data directory."
          />
          <Refused action={action} />
          <button type="submit" class="button-main" disabled={action.isBusy || token.trim() === ""}>
            Sign in
          </button>
        </form>
        <p class="muted small">
          No token? The server's operator can print a one-time sign-in link: <code>gatehouse console</code>
        </p>
      </main>
    </div>
  );
}

/** Explains a refused secret. The server's own message is written for programs. */
function Refused({ action: { problem } }: { readonly action: Action }): JSX.Element | null {
  if (problem?.status !== 401) return <ProblemNote problem={problem} />;
  return (
    <div class="problem" role="alert">
      <strong>This token or link is unknown, has expired, or was revoked.</strong>
      <span>A link works once, within 30 minutes. To print a new one, run: gatehouse console</span>
    </div>
  );
}
