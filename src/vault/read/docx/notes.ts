import { attribute, readXml } from "./xml.ts";

const KINDS = ["footnote", "endnote"] as const;
export type NoteKind = (typeof KINDS)[number];

/** The footnotes and endnotes that a document refers to, numbered together in order of first reference. */
export class Notes {
  readonly #numbers = new Map<string, number>();

  /** The number of the note that an element refers to; null for any other element. */
  numberOf(element: string, id: string | undefined): number | null {
    const kind = KINDS.find((each) => element === `w:${each}Reference`);
    if (kind === undefined || id === undefined) return null;
    const name = `${kind} ${id}`;
    const number = this.#numbers.get(name) ?? this.#numbers.size + 1;
    this.#numbers.set(name, number);
    return number;
  }

  /** The texts of referenced notes, by number. */
  read(parts: Readonly<Record<NoteKind, Uint8Array | null>>): readonly [number: number, text: string][] {
    const texts: [number, string][] = [];
    for (const kind of KINDS) {
      const part = parts[kind];
      if (part !== null && this.#numbers.size > 0) this.#readPart(kind, part, texts);
    }
    return texts.sort(([left], [right]) => left - right);
  }

  #readPart(kind: NoteKind, part: Uint8Array, texts: [number, string][]): void {
    let number: number | undefined;
    let text = "";
    let isText = false;
    readXml(part, {
      open: (name, attributes) => {
        if (name === `w:${kind}`) {
          number = this.#numbers.get(`${kind} ${attribute(attributes, "id") ?? ""}`);
          text = "";
        }
        isText = name === "w:t";
        if (name === "w:tab" || name === "w:br") text += " ";
      },
      close(name) {
        isText = false;
        if (name === "w:p") text += " ";
        if (name !== `w:${kind}`) return;
        if (number !== undefined && text.trim() !== "") texts.push([number, text.trim()]);
        number = undefined;
      },
      text(piece) {
        if (isText && number !== undefined) text += piece;
      },
    });
  }
}
