import { Parser } from "htmlparser2";
import { Fault } from "../fault.ts";

/** The deepest nesting of elements. Tables inside tables inside text boxes need about fifty. */
const MAX_DEPTH = 1_000;
/** Bytes parsed at a time. */
const SLICE = 64 * 1_024;

/** The namespaces read, transitional and strict (ECMA-376, parts 1 and 4), and the prefixes used for them here. */
const PREFIXES: ReadonlyMap<string, string> = new Map([
  ["http://schemas.openxmlformats.org/wordprocessingml/2006/main", "w"],
  ["http://purl.oclc.org/ooxml/wordprocessingml/main", "w"],
  ["http://schemas.openxmlformats.org/officeDocument/2006/math", "m"],
  ["http://purl.oclc.org/ooxml/officeDocument/math", "m"],
  ["http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing", "wp"],
  ["http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing", "wp"],
  ["http://schemas.openxmlformats.org/markup-compatibility/2006", "mc"],
  ["urn:schemas-microsoft-com:vml", "v"],
]);

export type Attributes = Readonly<Record<string, string>>;

export interface XmlHandler {
  /** `name` has one of the prefixes above, whatever prefix the document uses. */
  open(name: string, attributes: Attributes): void;
  close(name: string): void;
  text(text: string): void;
}

/** The value of an attribute, whatever its prefix. */
export function attribute(attributes: Attributes, name: string): string | undefined {
  for (const key of Object.keys(attributes)) {
    if (key === name || (key.endsWith(name) && key[key.length - name.length - 1] === ":"))
      return attributes[key];
  }
  return undefined;
}

/**
 * Reads a part's XML tag by tag.
 * @throws Fault if it ends early, has a document type, or is nested too deeply
 */
export function readXml(bytes: Uint8Array, handler: XmlHandler): void {
  const names = new Names();
  let depth = 0;
  let elements = 0;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1;
        elements += 1;
        if (depth > MAX_DEPTH) throw new Fault(`it has elements nested more than ${MAX_DEPTH} levels deep`);
        names.declare(attributes);
        handler.open(names.of(name), attributes);
      },
      onclosetag(name) {
        depth -= 1;
        handler.close(names.of(name));
      },
      ontext: (text) => handler.text(text),
      onprocessinginstruction(name) {
        if (name.toLowerCase() === "!doctype") throw new Fault("it contains a document type declaration");
      },
    },
    { xmlMode: true },
  );
  const decoder = new TextDecoder(isUtf16(bytes) ? encodingOf(bytes) : "utf-8");
  for (let from = 0; from < bytes.length; from += SLICE) {
    parser.write(decoder.decode(bytes.subarray(from, from + SLICE), { stream: true }));
  }
  parser.write(decoder.decode());
  if (depth > 0 || elements === 0) throw new Fault("its XML is invalid");
  parser.end();
}

function isUtf16([first, second]: Uint8Array): boolean {
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
}

function encodingOf([first]: Uint8Array): "utf-16le" | "utf-16be" {
  return first === 0xff ? "utf-16le" : "utf-16be";
}

/** Prefixes declared by a part, which all office programs do on its root element. */
class Names {
  readonly #prefixes = new Map<string, string>();
  readonly #known = new Map<string, string>();

  declare(attributes: Attributes): void {
    for (const [key, value] of Object.entries(attributes)) {
      const prefix = key === "xmlns" ? "" : key.startsWith("xmlns:") ? key.slice("xmlns:".length) : null;
      const known = prefix === null ? undefined : PREFIXES.get(value);
      if (prefix === null || known === undefined || this.#prefixes.get(prefix) === known) continue;
      this.#prefixes.set(prefix, known);
      this.#known.clear();
    }
  }

  of(name: string): string {
    let found = this.#known.get(name);
    if (found !== undefined) return found;
    const at = name.indexOf(":");
    const prefix = this.#prefixes.get(name.slice(0, Math.max(0, at)));
    found = prefix === undefined ? name : `${prefix}:${name.slice(at + 1)}`;
    // A hostile document may have a new name for each element.
    if (this.#known.size >= MAX_NAMES) this.#known.clear();
    this.#known.set(name, found);
    return found;
  }
}

const MAX_NAMES = 1_000;
