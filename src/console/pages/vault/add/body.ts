/** A multiple of three, so that the slices' base64 can be joined. */
const SLICE = 3 * 1024 * 1024;

/** What a document's request says besides the file. */
export interface FileFields {
  readonly id?: string;
  readonly title: string;
  readonly scope: string;
  readonly content_type: string;
  readonly source_uri?: string;
  readonly metadata?: object;
}

/**
 * The request's body: JSON with the file in base64. The browser makes base64 slice by slice beside the page's own work, and
 * each slice becomes a part of a blob, so that the page holds no more than one of them.
 * @throws what `signal` was aborted with; Error where the file cannot be read
 */
export async function bodyOf(fields: FileFields, file: Blob, signal: AbortSignal): Promise<Blob> {
  const head = JSON.stringify({ ...fields, content_base64: "" }).slice(0, -2);
  const parts: BlobPart[] = [head];
  for (let start = 0; start < file.size; start += SLICE) {
    parts.push(new Blob([await base64Of(file.slice(start, start + SLICE))]));
    signal.throwIfAborted();
  }
  parts.push('"}');
  return new Blob(parts, { type: "application/json" });
}

function base64Of(slice: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const address = String(reader.result);
      resolve(address.slice(address.indexOf(",") + 1));
    };
    reader.onerror = () => reject(new Error("The file can’t be read. It may have been moved or changed."));
    reader.readAsDataURL(slice);
  });
}
