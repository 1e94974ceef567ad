/** A place to write text to: an element, or a substitute in tests. */
export interface TextPlace {
  /** Begins a new block after the last one, and returns a function that appends to it. */
  begin(): (text: string) => void;
  clear(): void;
}

/** Characters after which a block ends at the next line break. */
const BLOCK = 4_000;
/** Characters after which a block ends anywhere. */
const LONGEST_BLOCK = 32_000;

/**
 * Text that grows. A browser lays out a block again with each addition, so the text is written in blocks of a few
 * thousand characters, and only the last block changes. Additions between two frames are written together.
 */
export class WrittenText {
  readonly #parts: string[] = [];
  #length = 0;
  /** How much of `#parts` has been written. */
  #written = 0;
  #place: TextPlace | null = null;
  #append: ((text: string) => void) | null = null;
  #blockLength = 0;
  #frame: number | null = null;
  readonly #wrote: () => void;

  /** `wrote` is called after each write. */
  constructor(wrote: () => void) {
    this.#wrote = wrote;
  }

  get length(): number {
    return this.#length;
  }

  get text(): string {
    return this.#parts.join("");
  }

  add(text: string): void {
    if (text === "") return;
    this.#parts.push(text);
    this.#length += text.length;
    if (this.#place) this.#soon();
  }

  /** Writes the whole text into `place`, and all later additions. Null: stops writing. */
  show(place: TextPlace | null): void {
    this.#place = place;
    this.#append = null;
    this.#written = 0;
    if (place === null) {
      if (this.#frame !== null) cancelAnimationFrame(this.#frame);
      this.#frame = null;
      return;
    }
    place.clear();
    this.#write();
  }

  #soon(): void {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#write();
    });
  }

  #write(): void {
    let text = this.#parts.slice(this.#written).join("");
    this.#written = this.#parts.length;
    if (text === "" || !this.#place) return;
    while (text !== "") {
      if (this.#append === null) {
        this.#append = this.#place.begin();
        this.#blockLength = 0;
      }
      const end = this.#endOfBlock(text);
      this.#append(text.slice(0, end));
      this.#blockLength += end;
      if (end < text.length || this.#blockLength >= LONGEST_BLOCK) this.#append = null;
      text = text.slice(end);
    }
    this.#wrote();
  }

  /** How much of the text belongs to the current block. */
  #endOfBlock(text: string): number {
    const line = text.indexOf("\n", Math.max(0, BLOCK - this.#blockLength));
    if (line !== -1 && this.#blockLength + line < LONGEST_BLOCK) return line + 1;
    const most = LONGEST_BLOCK - this.#blockLength;
    if (text.length <= most) return text.length;
    // Not between the halves of a surrogate pair.
    return /[\ud800-\udbff]/.test(text.charAt(most - 1)) ? most + 1 : most;
  }
}

/** Blocks as elements within `parent`. */
export function elementPlace(parent: HTMLElement): TextPlace {
  return {
    begin() {
      const block = document.createElement("div");
      const text = document.createTextNode("");
      block.className = "text-block";
      block.append(text);
      parent.append(block);
      return (more) => text.appendData(more);
    },
    clear: () => parent.replaceChildren(),
  };
}
