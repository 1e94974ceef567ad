export type PairValue = string | number | boolean;
export type MetadataPairs = Readonly<Record<string, PairValue>>;

/** The parsed pairs, or the first invalid line. */
export type ReadPairs =
  | { readonly pairs: MetadataPairs; readonly error?: undefined }
  | { readonly pairs?: undefined; readonly error: string };

/** A name, quoted if it contains `=`, and the text after the sign. */
const LINE = /^("(?:[^"\\]|\\.)*"|[^="][^=]*?)\s*=\s*(.*)$/su;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Parses metadata typed as one `name=value` on each line. Numbers and booleans are read as in JSON; quoted values are
 * strings, and so is everything else.
 */
export function readPairs(text: string): ReadPairs {
  const pairs: [string, PairValue][] = [];
  for (const line of text.split("\n").map((part) => part.trim())) {
    if (line === "") continue;
    const match = LINE.exec(line);
    const name = match?.[1] === undefined ? undefined : unquoted(match[1]);
    const value = match?.[2] === undefined ? undefined : pairValue(match[2]);
    if (typeof name !== "string" || name === "" || value === undefined) {
      return { error: `"${line.slice(0, 80)}" does not have the form name=value` };
    }
    pairs.push([name, value]);
  }
  return { pairs: Object.fromEntries(pairs) };
}

/** Writes pairs so that they parse to the same values. */
export function writePairs(pairs: MetadataPairs): string {
  return Object.entries(pairs)
    .map(([name, value]) => pairText(name, value))
    .join("\n");
}

export function pairText(name: string, value: PairValue): string {
  const isPlainName = !name.includes("=") && !name.startsWith('"');
  const isPlainValue = typeof value !== "string" || (value === value.trim() && pairValue(value) === value);
  const written = typeof value === "string" && (!isPlainValue || value.includes("\n"));
  return `${isPlainName ? name : JSON.stringify(name)}=${written ? JSON.stringify(value) : value}`;
}

function pairValue(text: string): PairValue | undefined {
  if (text === "true" || text === "false") return text === "true";
  if (NUMBER.test(text)) return Number(text);
  return unquoted(text);
}

/** Undefined if a quote is not closed. */
function unquoted(text: string): string | undefined {
  if (!text.startsWith('"')) return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
