import { type JsonExcess, type JsonLimits, JsonMeter } from "./json-limits.ts";

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
/** Length in bytes of the longest blank line. */
const BLANK_LINE = 2;
/** The prefix of a line with data. */
const DATA = new TextEncoder().encode("data:");

export interface EventMeasure {
  /** Size in bytes of the largest event that is still open or ends within the measured bytes. */
  readonly bytes: number;
  /** The first limit that an event's JSON exceeds. */
  readonly excess: JsonExcess | null;
  /** Lines that end in the measured bytes. */
  readonly lines: number;
  /** Events that end in the measured bytes and contain more than a blank line. */
  readonly events: number;
}

/**
 * Measures the events of a `text/event-stream` by its bytes: their length, and the depth and width of the JSON in
 * their data. Lines end in LF, CR or CRLF, and a blank line ends an event (HTML standard, 9.2.5).
 */
export class EventMeter {
  readonly #json: JsonMeter;
  #length = 0;
  #column = 0;
  #isData = true;
  #isFirstLine = true;
  #afterReturn = false;

  /** @param json the limits of one event's data */
  constructor(json?: JsonLimits) {
    this.#json = new JsonMeter(json);
  }

  /** Measures the next bytes. */
  add(part: Uint8Array): EventMeasure {
    let most = this.#length;
    let excess: JsonExcess | null = null;
    let lines = 0;
    let events = 0;
    for (let at = 0; at < part.length; at++) {
      const byte = part[at];
      this.#length++;
      if (byte === LINE_FEED && this.#afterReturn) {
        this.#afterReturn = false;
        continue;
      }
      this.#afterReturn = byte === CARRIAGE_RETURN;
      if (byte === LINE_FEED || this.#afterReturn) {
        lines++;
        if (this.#column === 0) {
          most = Math.max(most, this.#length);
          if (this.#length > BLANK_LINE) events++;
          this.#length = 0;
          this.#json.reset();
        }
        this.#beginLine();
      } else if (this.#isData && this.#column === DATA.length) {
        const end = endOfLine(part, at);
        excess ??= this.#json.add(part.subarray(at, end));
        this.#length += end - at - 1;
        at = end - 1;
      } else if (!this.#isMark(byte)) {
        this.#isData &&= byte === DATA[this.#column];
        this.#column++;
      }
    }
    return { bytes: Math.max(most, this.#length), excess, lines, events };
  }

  #beginLine(): void {
    this.#json.endLine();
    this.#column = 0;
    this.#isData = true;
    this.#isFirstLine = false;
  }

  /** Whether a byte belongs to a byte order mark before the first line. Readers skip one or two. */
  #isMark(byte: number | undefined): boolean {
    return this.#isFirstLine && this.#column === 0 && (byte === 0xef || byte === 0xbb || byte === 0xbf);
  }
}

function endOfLine(part: Uint8Array, start: number): number {
  let at = start;
  while (at < part.length && part[at] !== LINE_FEED && part[at] !== CARRIAGE_RETURN) at++;
  return at;
}
