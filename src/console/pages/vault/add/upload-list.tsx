import type { JSX } from "preact";
import type { ApiProblem } from "../../../api/problem.ts";
import { adviceFor } from "../../../api/problem.ts";
import { Card } from "../../../parts/page.tsx";
import { countText, plural } from "../../../parts/text.tsx";
import { documentAddress } from "../address.ts";
import { sizeText } from "./file-type.ts";
import { isOpen, type Upload, type UploadQueue } from "./upload-queue.ts";

/** The progress and result of each upload. */
export function UploadList({
  uploads,
  queue,
}: {
  readonly uploads: readonly Upload[];
  readonly queue: UploadQueue;
}): JSX.Element | null {
  if (uploads.length === 0) return null;
  const left = uploads.filter(({ state }) => isOpen(state)).length;
  const done = uploads.filter(({ state }) => state.kind === "done").length;
  const failed = uploads.filter(({ state }) => state.kind === "failed").length;
  const summary = [
    left > 0 && `${countText(left)} to go`,
    `${countText(done)} added`,
    failed > 0 && `${countText(failed)} failed`,
  ];
  return (
    <Card
      title="Uploads"
      actions={
        <>
          <span class="muted small" role="status">
            {plural(uploads.length, "file")}: {summary.filter((part) => part !== false).join(", ")}
          </span>
          {left < uploads.length && (
            <button type="button" class="button-small" onClick={() => queue.clear()}>
              Clear
            </button>
          )}
        </>
      }
    >
      <ul class="vault-uploads">
        {uploads.map((upload) => (
          <UploadRow key={upload.id} upload={upload} queue={queue} />
        ))}
      </ul>
    </Card>
  );
}

function UploadRow({ upload, queue }: { readonly upload: Upload; readonly queue: UploadQueue }): JSX.Element {
  const { id, file, scope, state } = upload;
  return (
    <li>
      <div class="vault-upload-name">
        {state.kind === "done" ? (
          <a class="break" href={documentAddress(state.document.id)}>
            {state.document.title}
          </a>
        ) : (
          <span class="break">{file.name}</span>
        )}
        <span class="small muted break">
          {sizeText(file.size)} into <span class="mono">{scope}</span>
        </span>
      </div>
      <UploadProgress upload={upload} />
      {isOpen(state) && (
        <button
          type="button"
          class="button-small"
          aria-label={`Cancel ${file.name}`}
          onClick={() => queue.cancel(id)}
        >
          Cancel
        </button>
      )}
      {(state.kind === "failed" || state.kind === "cancelled") && (
        <button
          type="button"
          class="button-small"
          aria-label={`Try again: ${file.name}`}
          onClick={() => queue.again(id)}
        >
          Try again
        </button>
      )}
    </li>
  );
}

function UploadProgress({ upload: { file, state } }: { readonly upload: Upload }): JSX.Element {
  switch (state.kind) {
    case "sending":
      return (
        <span class="vault-upload-state">
          <progress value={state.share} max={1} aria-label={`${file.name}, sent`} />
          <span class="number small">{Math.floor(state.share * 100)}%</span>
        </span>
      );
    case "done":
      return (
        <span class="vault-upload-state good">
          Added, {plural(state.document.chunks, "passage")}
          {state.document.vectors === "pending" && ", vectors pending"}
        </span>
      );
    case "failed":
      return <span class="vault-upload-state bad break">{failureText(state.problem)}</span>;
    default:
      return <span class="vault-upload-state muted">{WORDS[state.kind]}</span>;
  }
}

const WORDS = {
  waiting: "Waiting",
  reading: "Being read from your disk …",
  indexing: "Sent. The server is indexing it …",
  cancelled: "Cancelled. Nothing was added",
} as const;

/** The failure in one line. For a file, the server names one of its fields. */
function failureText(problem: ApiProblem): string {
  const fields = [...problem.fields].map(
    ([path, message]) => `${FIELDS[path] ?? path} ${message.replace(/\.$/, "")}.`,
  );
  const said = fields.length > 0 ? fields.join(" ") : problem.message;
  const advice = adviceFor(problem);
  return advice === undefined ? said : `${said} ${advice}`;
}

const FIELDS: Readonly<Record<string, string>> = {
  "/content_base64": "The file",
  "/content_type": "The type",
  "/title": "The file’s name, which is its title,",
  "/scope": "The scope",
};
