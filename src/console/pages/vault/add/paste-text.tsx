import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { VaultDocument } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import { CloseButton, Dialog } from "../../../parts/dialog.tsx";
import { Select, TextArea } from "../../../parts/field.tsx";
import { ProblemNote } from "../../../parts/problem.tsx";
import { Unsaved } from "../../../parts/unsaved.tsx";
import { useAction } from "../../../state/use-action.ts";
import { emptyDraft, errorsOf, isSameDraft, requestOf } from "./document-draft.ts";
import { DocumentFields } from "./document-fields.tsx";
import { TEXT_TYPES } from "./file-type.ts";

const NONE: ReadonlyMap<string, string> = new Map();

/** Adds a document as text. Keeps the input if the server refuses it. */
export function PasteText({
  scope,
  known,
  close,
  added,
}: {
  readonly scope: string;
  readonly known: readonly string[];
  readonly close: () => void;
  readonly added: (document: VaultDocument) => void;
}): JSX.Element {
  const [first] = useState(() => emptyDraft(scope));
  const [draft, setDraft] = useState(first);
  const isDirty = !isSameDraft(draft, first);
  const [wrong, setWrong] = useState(NONE);
  const action = useAction();
  const errors = new Map([...(action.problem?.fields ?? NONE), ...wrong]);

  async function add(): Promise<void> {
    const found = errorsOf(draft, true);
    setWrong(found);
    action.clear();
    if (found.size > 0) return;
    const document = await action.run(() => call("POST /v1/vault/documents", { body: requestOf(draft) }));
    if (!document) return;
    added(document);
    close();
  }

  return (
    <Dialog title="Add text to the vault" close={close} isWide isDirty={isDirty}>
      <Unsaved isDirty={isDirty} />
      <form
        class="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <DocumentFields draft={draft} change={setDraft} known={known} errors={errors} />
        <Select
          label="Kind of text"
          value={draft.type}
          options={TEXT_TYPES}
          change={(type) => setDraft({ ...draft, type })}
        />
        <TextArea
          label="Text"
          required
          rows={10}
          value={draft.text}
          change={(text) => setDraft({ ...draft, text })}
          error={errors.get("/text")}
        />
        <ProblemNote problem={action.problem} />
        <div class="dialog-end">
          <CloseButton>Cancel</CloseButton>
          <button type="submit" class="button-main" disabled={action.isBusy}>
            Add the document
          </button>
        </div>
      </form>
    </Dialog>
  );
}
