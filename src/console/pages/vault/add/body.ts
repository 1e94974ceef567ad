/** A multiple of three, so that the base64 of the slices can be joined. */
const SLICE = 3 * 1024 * 1024;

/** The fields of a document's request other than the file. */
export interface FileFields {
  readonly id?: string;
  readonly title: string;
  readonly scope: string;
  readonly content_type: string;
  readonly source_uri?: string;
  readonly metadata?: object;
}

/**
 * The request's body: JSON with the file in base64, encoded in slices that become parts of a blob, so that the page
 * holds only one slice in memory.
 * @throws the signal's reason; Error if the file cannot be read
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
