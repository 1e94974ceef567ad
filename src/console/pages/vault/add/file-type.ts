const WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/** What a file is, by the end of its name: as `gatehouse vault add` takes it. */
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
/** The types that a text can be sent as. */
export const TEXT_TYPES: readonly (readonly [string, string])[] = [
  ["text/plain", "Plain text"],
  ["text/markdown", "Markdown"],
  ["text/html", "HTML"],
  ["text/csv", "CSV"],
  ["application/json", "JSON"],
];

/** Bytes of a request (contract, section 3), and what surrounds a file in one. */
const MOST_SENT = 50 * 1024 * 1024;
const AROUND = 64 * 1024;
/** Base64 makes four characters of three bytes. */
export const MOST_BYTES = Math.floor(((MOST_SENT - AROUND) / 4) * 3);

/** The media type of a file; undefined where its name says none that can be read. */
export function typeOf(name: string): string | undefined {
  const ending = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined;
}

/** Why a file cannot be added, as far as that shows before it is sent. */
export function refusalOf({ name, size }: Pick<File, "name" | "size">): string | undefined {
  if (typeOf(name) === undefined) {
    return `Files of this type cannot be read. Those that can: ${Object.keys(TYPES).join(", ")}.`;
  }
  if (size === 0) return "The file is empty.";
  if (size > MOST_BYTES) return `Too big: ${sizeText(size)}. A file may have ${sizeText(MOST_BYTES)}.`;
  return undefined;
}

/** A file's name without its ending: what a document is called where nobody says otherwise. */
export function titleOf(name: string): string {
  return name.replace(/(?<=.)\.[a-z]+$/i, "").slice(0, 1_000);
}

/** A media type in a word, for people. */
export function typeName(type: string): string {
  const essence = type.split(";", 1)[0]?.trim() ?? type;
  return NAMES[essence] ?? essence;
}

/** Bytes as people say them. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}
