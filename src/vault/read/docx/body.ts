import type { ReadDocument } from "../document.ts";
import { Fault } from "../fault.ts";
import { HtmlText } from "../html.ts";
import { HeldText, type TextSink } from "./held.ts";
import { type NoteKind, Notes } from "./notes.ts";
import { kindOfName, type ParagraphKind } from "./styles.ts";
import { type Attributes, attribute, readXml, type XmlHandler } from "./xml.ts";

/** Parts that the body refers to. */
export interface DocxBodyParts {
  readonly styles: ReadonlyMap<string, ParagraphKind>;
  readonly notes: Readonly<Record<NoteKind, Uint8Array | null>>;
}

/** Elements that represent characters. */
const CHARACTERS: ReadonlyMap<string, string> = new Map([
  ["w:tab", "\t"],
  ["w:ptab", "\t"],
  ["w:noBreakHyphen", "\u2011"],
  ["w:softHyphen", "\u00ad"],
]);
/** Elements and their HTML equivalents. */
const BLOCKS: ReadonlyMap<string, string> = new Map([
  ["w:tbl", "table"],
  ["w:tr", "tr"],
  ["w:tc", "td"],
]);
/** Elements that are skipped: text deleted or moved away under tracked changes, and earlier properties. */
const LEFT_OUT = new Set(["w:del", "w:moveFrom", "w:pPrChange"]);

/** The text of the main part, followed by its notes. @throws Fault */
export function readBody(xml: Uint8Array, { styles, notes }: DocxBodyParts): ReadDocument {
  const text = new HtmlText();
  const body = new Body(text, styles);
  readXml(xml, body);
  if (!body.isDocument) throw new Fault("its main part is not a document");
  for (const [number, note] of body.notes.read(notes)) {
    text.open("p", {});
    text.text(`[${number}] ${note}`);
    text.close("p");
  }
  return text.finish();
}

interface Paragraph {
  kind: ParagraphKind;
  /** Whether its properties have been read and its element is open. */
  isOpen: boolean;
  /** Whether its end was deleted under tracked changes, so that the next paragraph belongs to it. */
  goesOn: boolean;
}

/** The destination of text, and the current paragraph. Each text box has its own. */
interface Flow {
  readonly sink: TextSink;
  /** Text boxes anchored in the paragraph. */
  readonly boxes: HeldText;
  paragraph: Paragraph | null;
}

/** Converts WordprocessingML to equivalent HTML elements. */
class Body implements XmlHandler {
  readonly notes = new Notes();
  readonly #styles: ReadonlyMap<string, ParagraphKind>;
  #flow: Flow;
  /** The flows around the open text boxes, innermost last. */
  readonly #around: Flow[] = [];
  /** For each open `mc:AlternateContent`: whether one of its alternatives has been read. */
  readonly #alternatives: boolean[] = [];
  #depth = 0;
  /** Depth of the element being skipped; 0 if none. */
  #leftOutFrom = 0;
  #isProperties = false;
  #isDocument = false;
  #isText = false;

  constructor(sink: TextSink, styles: ReadonlyMap<string, ParagraphKind>) {
    this.#flow = flowTo(sink);
    this.#styles = styles;
  }

  get isDocument(): boolean {
    return this.#isDocument;
  }

  open(name: string, attributes: Attributes): void {
    this.#depth += 1;
    if (this.#leftOutFrom > 0) return;
    if (this.#isLeftOut(name)) {
      this.#leftOutFrom = this.#depth;
      return;
    }
    this.#isText = name === "w:t" || name === "m:t";
    if (name === "w:p") this.#openParagraph();
    else if (name === "w:document") this.#isDocument = true;
    else if (name === "w:pPr") this.#isProperties = true;
    else if (this.#isProperties) this.#setProperty(name, attribute(attributes, "val"));
    else if (name === "w:txbxContent") this.#openBox();
    else if (name === "mc:AlternateContent") this.#alternatives.push(false);
    else if (BLOCKS.has(name)) this.#openBlock(BLOCKS.get(name) ?? "");
    else this.#openInline(name, attributes);
  }

  close(name: string): void {
    const depth = this.#depth;
    this.#depth -= 1;
    if (this.#leftOutFrom > 0) {
      if (depth === this.#leftOutFrom) this.#leftOutFrom = 0;
      return;
    }
    this.#isText = false;
    if (name === "w:p") this.#closeParagraph();
    else if (name === "w:pPr") this.#isProperties = false;
    else if (name === "w:txbxContent") this.#closeBox();
    else if (name === "mc:AlternateContent") this.#alternatives.pop();
    else if (BLOCKS.has(name)) {
      this.#endParagraph();
      this.#flow.sink.close(BLOCKS.get(name) ?? "");
    }
  }

  text(text: string): void {
    if (this.#isText && this.#leftOutFrom === 0) this.#add(text);
  }

  /** Of several alternatives, all but the first are skipped too. */
  #isLeftOut(name: string): boolean {
    if (name === "w:del" && this.#isProperties && this.#flow.paragraph) this.#flow.paragraph.goesOn = true;
    if (LEFT_OUT.has(name)) return true;
    if (name !== "mc:Choice" && name !== "mc:Fallback") return false;
    const wasRead = this.#alternatives.pop() ?? false;
    this.#alternatives.push(true);
    return wasRead;
  }

  #setProperty(name: string, value = ""): void {
    const { paragraph } = this.#flow;
    if (!paragraph || paragraph.isOpen) return;
    if (name === "w:pStyle") {
      paragraph.kind = this.#styles.get(value) ?? (this.#styles.size === 0 ? kindOfName(value) : "p");
    } else if (name === "w:numId") {
      // A numbered heading is still a heading.
      if (paragraph.kind === "p" && value !== "0") paragraph.kind = "li";
      else if (paragraph.kind === "li" && value === "0") paragraph.kind = "p";
    }
  }

  #openInline(name: string, attributes: Attributes): void {
    const character = CHARACTERS.get(name);
    if (character !== undefined) this.#add(character);
    else if (name === "w:br" || name === "w:cr") this.#break(attribute(attributes, "type"));
    else if (name === "wp:docPr")
      this.#picture(attribute(attributes, "descr") || attribute(attributes, "title"));
    else if (name === "v:imagedata") this.#picture(attribute(attributes, "title"));
    else {
      const number = this.notes.numberOf(name, attribute(attributes, "id"));
      if (number !== null) this.#add(`[${number}]`);
    }
  }

  #break(type = "textWrapping"): void {
    if (type === "textWrapping") {
      this.#begin();
      this.#flow.sink.open("br", {});
      this.#flow.sink.close("br");
    } else this.#add(" ");
  }

  #picture(description: string | undefined): void {
    if (description) this.#add(` ${description} `);
  }

  #add(text: string): void {
    this.#begin();
    this.#flow.sink.text(text);
  }

  #openParagraph(): void {
    const { paragraph } = this.#flow;
    if (paragraph?.goesOn) paragraph.goesOn = false;
    else this.#flow.paragraph = { kind: "p", isOpen: false, goesOn: false };
  }

  /** Called at a paragraph's first text, after its properties have been read. */
  #begin(): void {
    const { paragraph, sink } = this.#flow;
    if (!paragraph || paragraph.isOpen) return;
    paragraph.isOpen = true;
    sink.open(paragraph.kind, {});
  }

  #closeParagraph(): void {
    if (!this.#flow.paragraph?.goesOn) this.#endParagraph();
  }

  #endParagraph(): void {
    const { paragraph, sink, boxes } = this.#flow;
    if (paragraph?.isOpen) sink.close(paragraph.kind);
    this.#flow.paragraph = null;
    boxes.release(sink);
  }

  #openBlock(name: string): void {
    this.#endParagraph();
    this.#flow.sink.open(name, {});
  }

  #openBox(): void {
    this.#around.push(this.#flow);
    this.#flow = flowTo(this.#flow.boxes);
  }

  #closeBox(): void {
    this.#endParagraph();
    this.#flow = this.#around.pop() ?? this.#flow;
  }
}

function flowTo(sink: TextSink): Flow {
  return { sink, boxes: new HeldText(), paragraph: null };
}
