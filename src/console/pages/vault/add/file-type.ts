const WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/** Media types by file extension, the same as in `gatehouse vault add`. */
const TYPES: Readonly<Record<string, string>> = {
  txt: "text/plain",
  text: "text/plain",
  md: "text/markdown",
  markdown: "text/markdown",
  html: "text/html",
  htm: "text/html",
  xhtml: "application/xhtml+xml",
  pdf: "application/pdf",
  docx: WORD,
  csv: "text/csv",
  tsv: "text/csv",
  json: "application/json",
};
const NAMES: Readonly<Record<string, string>> = {
  "text/plain": "text",
  "text/markdown": "Markdown",
  "text/html": "HTML",
  "application/xhtml+xml": "XHTML",
  "application/pdf": "PDF",
  [WORD]: "Word",
  "text/csv": "CSV",
  "application/json": "JSON",
};

/** For a file input. */
export const ACCEPTED = Object.keys(TYPES)
  .map((ending) => `.${ending}`)
  .join();
/** The media types that text can be sent as. */
export const TEXT_TYPES: readonly (readonly [string, string])[] = [
  ["text/plain", "Plain text"],
  ["text/markdown", "Markdown"],
  ["text/html", "HTML"],
  ["text/csv", "CSV"],
  ["application/json", "JSON"],
];

/** The maximum size in bytes of a request (contract, section 3), and an allowance for the JSON around a file. */
const MOST_SENT = 50 * 1024 * 1024;
const AROUND = 64 * 1024;
/** Base64 turns three bytes into four characters. */
export const MOST_BYTES = Math.floor(((MOST_SENT - AROUND) / 4) * 3);

/** The media type of a file; undefined if its extension is not supported. */
export function typeOf(name: string): string | undefined {
  const ending = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined;
}

/** Why a file cannot be added, if that is known before it is sent. */
export function refusalOf({ name, size }: Pick<File, "name" | "size">): string | undefined {
  if (typeOf(name) === undefined) {
    return `Files of this type cannot be read. Supported types: ${Object.keys(TYPES).join(", ")}.`;
  }
  if (size === 0) return "The file is empty.";
  if (size > MOST_BYTES) return `Too large: ${sizeText(size)}. The limit is ${sizeText(MOST_BYTES)}.`;
  return undefined;
}

/** A file's name without its extension: the document's default title. */
export function titleOf(name: string): string {
  return name.replace(/(?<=.)\.[a-z]+$/i, "").slice(0, 1_000);
}

/** A media type in a word. */
export function typeName(type: string): string {
  const essence = type.split(";", 1)[0]?.trim() ?? type;
  return NAMES[essence] ?? essence;
}

/** A size in bytes as readable text. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}
