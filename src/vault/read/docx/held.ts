import { Fault } from "../fault.ts";
import type { HtmlText } from "../html.ts";

/** Maximum number of pieces that can be held back. */
const MOST = 100_000;

export type TextSink = Pick<HtmlText, "open" | "close" | "text">;

/** Holds back the text of text boxes, which are anchored in a paragraph, until the paragraph has ended. */
export class HeldText implements TextSink {
  readonly #pieces: ((sink: TextSink) => void)[] = [];

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    this.#hold((sink) => sink.open(name, attributes));
  }

  close(name: string): void {
    this.#hold((sink) => sink.close(name));
  }

  text(text: string): void {
    this.#hold((sink) => sink.text(text));
  }

  /** Passes everything on to another sink and clears this one. */
  release(sink: TextSink): void {
    for (const piece of this.#pieces.splice(0)) piece(sink);
  }

  #hold(piece: (sink: TextSink) => void): void {
    if (this.#pieces.length >= MOST) throw new Fault(`it has a text box of more than ${MOST} pieces`);
    this.#pieces.push(piece);
  }
}
