import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { VaultDocument } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import { Confirm } from "../../../parts/dialog.tsx";
import { Check } from "../../../parts/field.tsx";
import { useSession } from "../../../state/session.tsx";
import { useAction } from "../../../state/use-action.ts";

export function DeleteDocument({
  document,
  close,
  deleted,
}: {
  readonly document: VaultDocument;
  readonly close: () => void;
  readonly deleted: () => void;
}): JSX.Element {
  const { can } = useSession();
  const [withQuotes, setWithQuotes] = useState(false);
  const action = useAction();
  return (
    <Confirm
      title={`Delete ${document.title}?`}
      confirm="Delete the document"
      action={action}
      close={close}
      work={async () => {
        await call("DELETE /v1/vault/documents/:id", {
          params: { id: document.id },
          query: withQuotes ? { payloads: true } : {},
        });
        deleted();
      }}
    >
      <p>
        Its text, its passages and its vectors are taken out of the server’s files, and no agent finds it any
        more. It does not come back.
      </p>
      {can("settings:write") ? (
        <Check
          label="Also erase what tasks have quoted from it"
          hint="Prompts, outputs and arguments in which passages of it were found are erased. That they were there stays provable in the ledger."
          checked={withQuotes}
          change={setWithQuotes}
        />
      ) : (
        <p class="muted">
          What tasks have quoted from it stays until its time is over. Erasing it as well takes the scope{" "}
          <code>settings:write</code>.
        </p>
      )}
    </Confirm>
  );
}
