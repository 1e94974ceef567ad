import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { IssuedToken, Token } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import { Dialog } from "../../../parts/dialog.tsx";
import { Select, TextField } from "../../../parts/field.tsx";
import { ProblemNote } from "../../../parts/problem.tsx";
import { useAction } from "../../../state/use-action.ts";

const AT_ONCE = "0s";
const OTHER = "other";
const LATER: readonly (readonly [string, string])[] = [
  ["10m", "10 minutes"],
  ["1h", "1 hour"],
  ["24h", "24 hours"],
];
const ANY: readonly (readonly [string, string])[] = [
  [AT_ONCE, "Not at all: it expires at once"],
  ...LATER,
  [OTHER, "Another time"],
];

/** Gives a token a new secret, and asks how long the old one stays valid. */
export function RotateDialog({
  token,
  isOwn,
  close,
  rotated,
}: {
  readonly token: Token;
  /** Whether this browser is signed in with the token. */
  readonly isOwn: boolean;
  readonly close: () => void;
  /** `former`: how long the old secret stays valid, in words; null if it is invalid at once. */
  readonly rotated: (token: IssuedToken, former: string | null) => void;
}): JSX.Element {
  const [grace, setGrace] = useState(isOwn ? "10m" : AT_ONCE);
  const [other, setOther] = useState("");
  const action = useAction();
  const error = action.problem?.fields.get("/grace");

  async function rotate(): Promise<void> {
    const body = { grace: grace === OTHER ? other.trim() : grace };
    const issued = await action.run(() =>
      call("POST /v1/tokens/:id/rotate", { params: { id: token.id }, body }),
    );
    if (issued) rotated(issued, /^0[smhdw]$/.test(body.grace) ? null : wordsFor(body.grace));
  }

  return (
    <Dialog title={`Give ${token.name} a new secret?`} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void rotate();
        }}
      >
        <p>The token keeps its name, id and scopes. The new secret is shown once.</p>
        <Select
          label="The old secret stays valid for"
          value={grace}
          change={setGrace}
          options={isOwn ? LATER : ANY}
          error={grace === OTHER ? undefined : error}
          hint={
            isOwn
              ? "You are signed in with this token: your session ends when the old secret expires."
              : "Choose a time long enough to replace the secret everywhere. Browsers signed in with it are signed out when it expires."
          }
        />
        {grace === OTHER && (
          <TextField
            label="Time"
            value={other}
            change={setOther}
            required
            placeholder="45m"
            error={error}
            hint="A number and s, m, h, d or w."
          />
        )}
        <ProblemNote problem={action.problem} />
        <div class="dialog-end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button-main" disabled={action.isBusy}>
            Rotate
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function wordsFor(grace: string): string {
  return LATER.find(([value]) => value === grace)?.[1] ?? grace;
}
