import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { Select } from "../parts/field.tsx";
import { Icon } from "../parts/icons.tsx";
import { Facts } from "../parts/page.tsx";
import { ProblemNote } from "../parts/problem.tsx";
import { Time } from "../parts/text.tsx";
import { useSession } from "../state/session.tsx";
import { useAction } from "../state/use-action.ts";
import { chooseTheme, chosenTheme, type Theme } from "./theme.ts";

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "System setting"],
  ["light", "Light"],
  ["dark", "Dark"],
];

/** Shows who is signed in and with what rights, and signs out. */
export function Account(): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { session } = useSession();
  return (
    <>
      <button type="button" class="button-plain" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <Icon name="theme" />
        <span class="only-wide cut">{session.person ?? session.token?.name}</span>
        <span class="unseen">: account and colours</span>
      </button>
      {isOpen && <AccountDialog close={() => setOpen(false)} />}
    </>
  );
}

function AccountDialog({ close }: { readonly close: () => void }): JSX.Element {
  const { session, signOut } = useSession();
  const [theme, setTheme] = useState(chosenTheme);
  const action = useAction();
  const expires = session.session?.expires_at ?? null;
  return (
    <Dialog title="Signed in" close={close}>
      <Facts
        of={[
          ["Person", session.person ?? "The token does not name a person"],
          session.role === null ? null : ["Role", session.role],
          ["Token", session.token?.name],
          ["Workspace", session.workspace],
          session.agent === null ? null : ["Acts as", session.agent],
          ["Scopes", session.scopes.join(", ")],
          ["Until", <Time key="until" at={expires} whole />],
        ]}
      />
      <Select
        label="Colours"
        value={theme}
        options={THEMES}
        change={(value) => {
          const chosen = THEMES.find(([name]) => name === value)?.[0] ?? "system";
          setTheme(chosen);
          chooseTheme(chosen);
        }}
      />
      <ProblemNote problem={action.problem} />
      <div class="dialog-end">
        <button type="button" disabled={action.isBusy} onClick={() => void action.run(signOut)}>
          <Icon name="out" />
          Sign out
        </button>
        <button type="button" class="button-main" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
