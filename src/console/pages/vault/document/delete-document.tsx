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
        Its text, passages and vectors are removed from the server’s files, and no agent finds it any more.
        This cannot be undone.
      </p>
      {can("settings:write") ? (
        <Check
          label="Also erase what tasks have quoted from it"
          hint="Erases prompts, outputs and arguments that contain its passages. The ledger can still prove that they existed."
          checked={withQuotes}
          change={setWithQuotes}
        />
      ) : (
        <p class="muted">
          Quotes in tasks stay until their retention period ends. To erase them too, you need the scope{" "}
          <code>settings:write</code>.
        </p>
      )}
    </Confirm>
  );
}
