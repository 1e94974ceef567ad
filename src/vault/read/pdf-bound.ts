import { Fault } from "./fault.ts";
import { Damaged, decode, type PdfFilter } from "./pdf-filters.ts";
import { Budget, type PdfDictionary, PdfReader, type PdfValue } from "./pdf-lexer.ts";

const MIB = 1_048_576;
/** Bytes that one stream may decode to, at every step of its filters. */
const MAX_STREAM = 32 * MIB;
/** Bytes that all streams may decode to together, other than pictures and attached files. */
const MAX_STREAMS = 128 * MIB;
/** Bytes that one stream of objects may decode to: as objects they take up to 30 times as much. */
const MAX_OBJECTS = 8 * MIB;
/** Entries that all cross-reference streams may announce, and objects that one stream may. */
const MAX_ENTRIES = 4_000_000;
/** Bytes of a predictor's row, which is allocated whole. */
const MAX_ROW = MIB;

const PICTURE_FILTERS = ["DCT", "DCTDecode", "JPX", "JPXDecode", "CCF", "CCITTFaxDecode", "JBIG2Decode"];
/** Those that decode much, or all, as soon as another filter that follows asks for its first byte. */
const EAGER_FILTERS = [...PICTURE_FILTERS, "Fl", "FlateDecode"];
const NESTED_STREAM = />>(?:[\0\t\n\f\r ]|%[^\r\n]*[\r\n])*stream(?![^\0\t\n\f\r %()<>[\]{}/])/u;

/**
 * A copy of a PDF file that pdf.js can read in bounded memory.
 *
 * pdf.js decodes a stream as a whole, however much comes out of it. It finds one by reading ahead from the text "obj" (or
 * "trailer"), wherever in the file that stands, and only there: so every one of these is read here too, in the way it does,
 * and each stream is decoded once, under a cap. Pictures and attached files aren't decoded but lose their filters in the
 * copy, and so can't be decoded later, whatever refers to them; text doesn't need them. Damaged streams do so too.
 * @throws Fault for a file that goes beyond the bounds, or that can't be judged
 */
export function boundPdf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const bound = new PdfBound(bytes);
  bound.check();
  return bound.copy;
}

class PdfBound {
  readonly copy: Uint8Array<ArrayBuffer>;
  readonly #bytes: Buffer;
  readonly #budget: Budget;
  #left = MAX_STREAMS;
  #entries = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.copy = new Uint8Array(bytes);
    // A file's own size for its objects and again for its streams, and as much for mistakes in either.
    this.#budget = new Budget(4 * bytes.length + MIB);
  }

  check(): void {
    for (const word of ["obj", "trailer"]) {
      for (let at = this.#bytes.indexOf(word); at !== -1; at = this.#bytes.indexOf(word, at + 1)) {
        // "endobj" is a word of its own.
        if (this.#bytes[at - 1] !== 0x64) this.#checkObject(at + word.length);
      }
    }
    this.#checkInline(this.#bytes, this.#budget);
  }

  #checkObject(at: number): void {
    const object = new PdfReader(this.#bytes, at, this.#budget).read();
    if (object?.value.kind !== "dictionary") return;
    const { entries, filters } = object.value;
    if (entries.has("Encrypt")) {
      throw new Fault("is encrypted with a password, be it only against changes: send a copy without one");
    }
    if (object.data === null) return;
    if (filters.length > 1) throw new Fault("has a part that names its filters twice");
    this.#checkEntries(object.value);
    if (isPicture(object.value) || nameOf(entries.get("Type")) === "EmbeddedFile") {
      this.#removeFilters(object.value);
      return;
    }
    this.#checkStream(object.value, object.data);
  }

  #checkStream(dictionary: PdfDictionary, start: number): void {
    const { entries } = dictionary;
    const filters = filtersOf(dictionary);
    const objects = entries.has("N") && entries.has("First");
    // Read once, wherever its object starts.
    if (filters.length === 0 && !objects) return;
    const data = this.#bytes.subarray(start, this.#endOf(start, entries.get("Length")));
    const most = objects ? MAX_OBJECTS : MAX_STREAM;
    let decoded: Uint8Array;
    try {
      decoded = decode(data, filters, most, this.#budget);
    } catch (error) {
      if (!(error instanceof Damaged)) throw error;
      this.#removeFilters(dictionary);
      return;
    }
    if (objects) this.#checkObjects(decoded, filters.length === 0);
    if (filters.length === 0) return;
    this.#left -= decoded.length;
    if (this.#left < 0) throw new Fault(`unfolds to more than ${MAX_STREAMS / MIB} MiB`);
    this.#checkInline(decoded, new Budget(4 * decoded.length + MIB));
  }

  /** pdf.js would take a stream within a stream of objects, which no standard allows. */
  #checkObjects(decoded: Uint8Array, plain: boolean): void {
    if (plain) this.#budget.spend(decoded.length);
    const text = Buffer.from(decoded.buffer, decoded.byteOffset, decoded.length).toString("latin1");
    if (NESTED_STREAM.test(text)) throw new Fault("has a stream within another one");
  }

  /** The end that pdf.js would see if the length is right, and otherwise that of the file. */
  #endOf(start: number, length: PdfValue | undefined): number {
    if (length?.kind !== "number" || !Number.isInteger(length.value)) return this.#bytes.length;
    const end = start + length.value;
    const right = end <= this.#bytes.length && this.#followsEnd(end);
    return right ? end : this.#bytes.length;
  }

  #followsEnd(at: number): boolean {
    // Nothing but blanks and the word: what may come further back is not of interest.
    return /^[\0\t\n\f\r ]{0,64}endstream(?![^\0\t\n\f\r %()<>[\]{}/])/u.test(
      this.#bytes.toString("latin1", at, at + 80),
    );
  }

  #checkEntries({ entries }: PdfDictionary): void {
    const number = entries.get("N");
    if (number !== undefined && entries.has("First")) this.#announce(number);
    if (!entries.has("W")) return;
    const [, widest] = itemsOf(entries.get("W"));
    // Without a width, entries would take no bytes and come without an end.
    if (widest === undefined || integerOf(widest) < 1)
      throw new Fault("has a cross-reference stream without content");
    const ranges = itemsOf(entries.get("Index"));
    if (ranges.length === 0) this.#announce(entries.get("Size"));
    for (const [index, count] of ranges.entries()) if (index % 2 === 1) this.#announce(count);
  }

  #announce(count: PdfValue | undefined): void {
    this.#entries += integerOf(count);
    if (!(this.#entries <= MAX_ENTRIES)) {
      throw new Fault(`announces more than ${MAX_ENTRIES.toLocaleString("en")} objects`);
    }
  }

  /** Blanks keep every other place in the file where it is. */
  #removeFilters({ filters }: PdfDictionary): void {
    for (const { from, to } of filters) {
      if (/[()%<>]/u.test(this.#bytes.toString("latin1", from, to)))
        throw new Fault("has a filter that can't be told");
      for (let at = from; at < to; at += 1) {
        if (this.copy[at] !== 10 && this.copy[at] !== 13) this.copy[at] = 32;
      }
    }
  }

  /** Pictures within a page's content aren't decoded either, but where filters are chained, the first may be. */
  #checkInline(content: Uint8Array, budget: Budget): void {
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
    for (let at = bytes.indexOf("BI"); at !== -1; at = bytes.indexOf("BI", at + 1)) {
      const entries = new PdfReader(bytes, at + 2, budget).readInline()?.entries;
      for (const filter of [entries?.get("F"), entries?.get("Filter")]) {
        if (filter?.kind === "reference") throw new Fault("has a filter that can't be told");
        if (filter?.kind !== "array") continue;
        if (filter.items.some((item) => item.kind !== "name"))
          throw new Fault("has a filter that can't be told");
        if (filter.items.slice(0, -1).some((item) => EAGER_FILTERS.includes(nameOf(item) ?? ""))) {
          throw new Fault("has a picture that is compressed more than once");
        }
      }
    }
  }
}

/** Also those that don't say so, such as thumbnails. */
function isPicture({ entries }: PdfDictionary): boolean {
  if (nameOf(entries.get("Subtype")) === "Image") return true;
  if (entries.has("Width") && entries.has("Height")) return true;
  const filter = entries.get("F") ?? entries.get("Filter");
  return [filter, ...itemsOf(filter)].some((item) => PICTURE_FILTERS.includes(nameOf(item) ?? ""));
}

function filtersOf({ entries }: PdfDictionary): PdfFilter[] {
  const filter = entries.get("F") ?? entries.get("Filter");
  const parameters = entries.get("DP") ?? entries.get("DecodeParms");
  if (filter?.kind === "name") return [filterOf(filter, parameters)];
  // What is no filter at all, such as null, is none to pdf.js either.
  if (filter?.kind === "reference" || filter?.kind === "number")
    throw new Fault("has a filter that can't be told");
  if (parameters?.kind === "reference") throw new Fault("has a filter whose parameters can't be told");
  const all = itemsOf(parameters);
  return itemsOf(filter).map((item, index) => filterOf(item, all[index]));
}

function filterOf(filter: PdfValue, parameters: PdfValue | undefined): PdfFilter {
  const name = nameOf(filter);
  if (name === null || name === "BrotliDecode") throw new Fault("has a filter that can't be told");
  if (parameters?.kind === "reference" || parameters?.kind === "number") {
    throw new Fault("has a filter whose parameters can't be told");
  }
  const entries = parameters?.kind === "dictionary" ? parameters.entries : new Map<string, PdfValue>();
  const integer = (key: string, otherwise: number) =>
    entries.has(key) ? integerOf(entries.get(key)) : otherwise;
  const earlyChange = integer("EarlyChange", 1);
  const kind = integer("Predictor", 1);
  const bits = integer("Colors", 1) * integer(entries.has("BPC") ? "BPC" : "BitsPerComponent", 8);
  const rowBytes = Math.ceil((bits * integer("Columns", 1)) / 8);
  const known = kind <= 1 || (kind >= 10 && kind <= 15 && rowBytes >= 1 && rowBytes <= MAX_ROW && bits >= 1);
  if (!known || earlyChange > 1 || Number.isNaN(earlyChange)) {
    throw new Fault("has a filter whose parameters are out of bounds");
  }
  return {
    name,
    earlyChange,
    predictor: kind <= 1 ? null : { kind, rowBytes, pixelBytes: Math.ceil(bits / 8) },
  };
}

function nameOf(value: PdfValue | undefined): string | null {
  return value?.kind === "name" ? value.name : null;
}

function itemsOf(value: PdfValue | undefined): readonly PdfValue[] {
  return value?.kind === "array" ? value.items : [];
}

function integerOf(value: PdfValue | undefined): number {
  return value?.kind === "number" ? value.value : Number.NaN;
}
