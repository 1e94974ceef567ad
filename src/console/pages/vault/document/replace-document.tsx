import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { VaultDocument } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import { CloseButton, Dialog } from "../../../parts/dialog.tsx";
import { Select, TextArea } from "../../../parts/field.tsx";
import { ProblemNote } from "../../../parts/problem.tsx";
import { Unsaved } from "../../../parts/unsaved.tsx";
import { useAction } from "../../../state/use-action.ts";
import { bodyOf } from "../add/body.ts";
import { draftOf, errorsOf, fieldsOf, isSameDraft, requestOf } from "../add/document-draft.ts";
import { DocumentFields } from "../add/document-fields.tsx";
import { refusalOf, TEXT_TYPES, typeOf } from "../add/file-type.ts";
import { sendDocument } from "../add/send.ts";
import { FileChoice } from "./file-choice.tsx";

type Document = VaultDocument & { readonly text: string };

const NONE: ReadonlyMap<string, string> = new Map();
/** Types stored exactly as sent, so the shown text can be edited and sent again. */
const EXACT: readonly string[] = ["text/plain", "text/markdown"];
/** Longer text cannot be edited in the page. */
const LONGEST_EDITED = 200_000;

/** Replaces a document's content or fields under the same id, so links to it keep working. */
export function ReplaceDocument({
  document,
  close,
  replaced,
}: {
  readonly document: Document;
  readonly close: () => void;
  readonly replaced: () => void;
}): JSX.Element {
  const canEdit = EXACT.includes(document.content_type) && document.text.length <= LONGEST_EDITED;
  const [first] = useState(() => ({
    ...draftOf(document),
    ...(canEdit ? { text: document.text, type: document.content_type } : {}),
  }));
  const [draft, setDraft] = useState(first);
  const [isFile, setIsFile] = useState(!canEdit);
  const [file, setFile] = useState<File | null>(null);
  const isDirty = file !== null || !isSameDraft(draft, first);
  const [wrong, setWrong] = useState(NONE);
  const [share, setShare] = useState<number | null>(null);
  const action = useAction();
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const errors = new Map([...(action.problem?.fields ?? NONE), ...wrong]);

  function errorsNow(): ReadonlyMap<string, string> {
    const found = new Map(errorsOf(draft, !isFile));
    const refusal = isFile && (file ? refusalOf(file) : "Choose a file");
    if (refusal) found.set("/content_base64", refusal);
    return found;
  }

  async function sendFile(chosen: File): Promise<void> {
    const controller = new AbortController();
    abort.current = controller;
    const fields = fieldsOf(draft, typeOf(chosen.name) ?? chosen.type, document.id);
    setShare(0);
    try {
      const body = await bodyOf(fields, chosen, controller.signal);
      await sendDocument(body, { signal: controller.signal, sent: setShare });
    } finally {
      setShare(null);
    }
  }

  async function replace(): Promise<void> {
    const found = errorsNow();
    setWrong(found);
    action.clear();
    if (found.size > 0) return;
    const isDone = await action.run(async () => {
      if (isFile && file) await sendFile(file);
      else await call("POST /v1/vault/documents", { body: requestOf(draft, document.id) });
      return true;
    });
    if (!isDone) return;
    replaced();
    close();
  }

  return (
    <Dialog title="Replace the document" close={close} isWide isDirty={isDirty}>
      <Unsaved isDirty={isDirty} />
      <form
        class="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void replace();
        }}
      >
        <p class="muted">
          The new one takes its place under the same id, in one step: searches find one or the other, never
          both.
        </p>
        <DocumentFields draft={draft} change={setDraft} known={[document.scope]} errors={errors} />
        <FileChoice
          isFile={isFile}
          choose={setIsFile}
          take={setFile}
          error={errors.get("/content_base64") ?? errors.get("/content_type")}
          share={share}
        />
        {!isFile && (
          <>
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
          </>
        )}
        <ProblemNote problem={action.problem} />
        <div class="dialog-end">
          <CloseButton>Cancel</CloseButton>
          <button type="submit" class="button-main" disabled={action.isBusy}>
            Replace the document
          </button>
        </div>
      </form>
    </Dialog>
  );
}
