import type { LanguageModelV4Source } from "@ai-sdk/provider";
import type { ItemQueue, OutputItem } from "./item-queue.ts";

const PART = { content_index: 0 };

/** Writes a message from the model: its text, with the sources. */
export class MessageWriter {
  readonly item: OutputItem;
  readonly #queue: ItemQueue;
  readonly #annotations: object[] = [];
  #text = "";

  constructor(queue: ItemQueue, id: string) {
    this.#queue = queue;
    this.item = queue.begin({ ...headOf(id), status: "in_progress", content: [] });
    queue.add(this.item, "response.content_part.added", { ...PART, part: textPart("", []) });
  }

  /** The end of the text written so far. */
  get length(): number {
    return this.#text.length;
  }

  add(delta: string): void {
    this.#text += delta;
    this.#queue.add(this.item, "response.output_text.delta", { ...PART, delta, logprobs: [] });
  }

  /** Adds a web page as a source. Other sources are results of a provider's own tools. */
  cite(source: LanguageModelV4Source, start = 0, end = this.length): void {
    if (source.sourceType !== "url") return;
    const { url, title = url } = source;
    const annotation = { type: "url_citation", url, title, start_index: start, end_index: end };
    const more = { ...PART, annotation_index: this.#annotations.length, annotation };
    this.#annotations.push(annotation);
    this.#queue.add(this.item, "response.output_text.annotation.added", more);
  }

  close(): void {
    if (this.item.isClosed) return;
    const part = textPart(this.#text, this.#annotations);
    this.#queue.add(this.item, "response.output_text.done", { ...PART, text: this.#text, logprobs: [] });
    this.#queue.add(this.item, "response.content_part.done", { ...PART, part });
    this.#queue.close(this.item, { ...headOf(this.item.id), status: "completed", content: [part] });
  }
}

function headOf(id: string) {
  return { type: "message", id, role: "assistant" } as const;
}

function textPart(text: string, annotations: readonly object[]): object {
  return { type: "output_text", text, annotations: [...annotations], logprobs: [] };
}
