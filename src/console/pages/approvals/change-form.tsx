import type { JSX } from "preact";
import { TextArea, TextField } from "../../parts/field.tsx";
import { DecisionForm, FormEnd, type FormParts } from "./answer-forms.tsx";
import { JsonDiff } from "./diff-view.tsx";
import { isSameJson, prettyJson, readArguments } from "./json.ts";

const MOST_ROWS = 16;

/** Replaces the arguments. Checked as JSON while typing, and against the tool's schema when sent. */
export function ChangeForm({
  before,
  draft,
  setDraft,
  action,
  reason,
  setReason,
  leave,
  send,
}: FormParts & {
  readonly before: unknown;
  /** The text as typed; null if untouched. */
  readonly draft: string | null;
  readonly setDraft: (draft: string) => void;
}): JSX.Element {
  const original = prettyJson(before);
  const text = draft ?? original;
  const read = readArguments(text);
  const given = "error" in read ? null : read.arguments;
  const isSame = given !== null && isSameJson(given, before);
  const faults = [...(action.problem?.fields ?? [])].filter(([path]) => path.startsWith("/arguments"));
  const error =
    "error" in read ? read.error : faults.map(([path, message]) => `${path} ${message}`).join("; ");
  return (
    <DecisionForm
      label="Change and approve"
      leave={leave}
      submit={() => {
        if (given !== null && !isSame) void send({ decision: "approve", reason, arguments: given });
      }}
    >
      <TextArea
        label="Arguments as JSON"
        isCode
        rows={Math.min(MOST_ROWS, text.split("\n").length + 1)}
        value={text}
        change={(next) => {
          setDraft(next);
          action.clear();
        }}
        error={error === "" ? undefined : error}
      />
      {given !== null && !isSame && (
        <>
          <h3>Your changes</h3>
          <JsonDiff before={before} after={given} label="Your changes" />
        </>
      )}
      <TextField
        label="Reason (optional)"
        value={reason}
        change={setReason}
        error={action.problem?.fields.get("/reason")}
      />
      <FormEnd leave={leave}>
        <button type="submit" class="button-main" disabled={action.isBusy || given === null || isSame}>
          Approve these arguments
        </button>
        {draft !== null && draft !== original && (
          <button
            type="button"
            onClick={() => {
              setDraft(original);
              action.clear();
            }}
          >
            Undo my changes
          </button>
        )}
        {isSame && <span class="small muted">Nothing has been changed yet.</span>}
      </FormEnd>
    </DecisionForm>
  );
}
