import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { FileButton } from "../../parts/file-button.tsx";
import { bytesText } from "../connectors/answer.ts";

/** A file that is sent with the prompt. */
export interface Attachment {
  readonly name: string;
  readonly mediaType: string;
  readonly size: number;
  /** Base64. */
  readonly data: string;
}

/** The maximum size in bytes of all files of a task, as enforced by the server. */
const MOST_BYTES = 6 * 1024 * 1024;
/** File types that browsers leave empty. */
const TYPES: Readonly<Record<string, string>> = {
  md: "text/markdown",
  csv: "text/csv",
  json: "application/json",
};

/** Images and other files that are sent with the prompt. */
export function Attachments({
  files,
  error,
  change,
}: {
  readonly files: readonly Attachment[];
  readonly error: string | undefined;
  readonly change: (files: readonly Attachment[]) => void;
}): JSX.Element {
  const [refusal, setRefusal] = useState<string | undefined>();
  async function take(chosen: readonly File[]): Promise<void> {
    const size = [...files, ...chosen].reduce((sum, file) => sum + file.size, 0);
    const empty = chosen.find((file) => file.size === 0);
    if (empty) return setRefusal(`${empty.name} is empty.`);
    if (size > MOST_BYTES) {
      return setRefusal(`The files are ${bytesText(size)} in total; the limit is ${bytesText(MOST_BYTES)}.`);
    }
    try {
      const read = await Promise.all(chosen.map(attachmentOf));
      setRefusal(undefined);
      change([...files, ...read]);
    } catch (failure) {
      setRefusal(failure instanceof Error ? failure.message : String(failure));
    }
  }
  const problem = refusal ?? error;
  return (
    <fieldset>
      <legend>Attachments</legend>
      {files.length > 0 && (
        <ul class="task-files">
          {files.map(({ name, mediaType, size }, index) => (
            <li key={index}>
              <span class="cut" title={name}>
                {name}
              </span>
              <span class="muted small">
                {mediaType}, <span class="number">{bytesText(size)}</span>
              </span>
              <button
                type="button"
                class="button-plain"
                aria-label={`Remove ${name}`}
                onClick={() => change(files.filter((_, other) => other !== index))}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      {problem && (
        <span class="error" role="alert">
          {problem}
        </span>
      )}
      <div>
        <FileButton label="Add files" isSmall take={(chosen) => void take(chosen)} />
      </div>
    </fieldset>
  );
}

async function attachmentOf(file: File): Promise<Attachment> {
  const { name, size } = file;
  const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  const mediaType = file.type || TYPES[ending] || "application/octet-stream";
  return { name, size, mediaType, data: await base64Of(file) };
}

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const address = String(reader.result);
      resolve(address.slice(address.indexOf(",") + 1));
    };
    reader.onerror = () =>
      reject(new Error(`${file.name} can’t be read. It may have been moved or changed.`));
    reader.readAsDataURL(file);
  });
}
