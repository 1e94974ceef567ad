import type { ItemQueue, OutputItem } from "./item-queue.ts";

const PART = { summary_index: 0 };

/** Writes thoughts as a summary. */
export class ReasoningWriter {
  readonly #queue: ItemQueue;
  readonly #item: OutputItem;
  #text = "";

  constructor(queue: ItemQueue, id: string) {
    this.#queue = queue;
    this.#item = queue.begin({ type: "reasoning", id, summary: [] });
  }

  add(delta: string): void {
    if (this.#text === "") {
      const part = { type: "summary_text", text: "" };
      this.#queue.add(this.#item, "response.reasoning_summary_part.added", { ...PART, part });
    }
    this.#text += delta;
    this.#queue.add(this.#item, "response.reasoning_summary_text.delta", { ...PART, delta });
  }

  /** @param signature the signature that the client must return with the thoughts */
  close(signature?: string): void {
    const text = this.#text;
    const part = { type: "summary_text", text };
    if (text !== "") {
      this.#queue.add(this.#item, "response.reasoning_summary_text.done", { ...PART, text });
      this.#queue.add(this.#item, "response.reasoning_summary_part.done", { ...PART, part });
    }
    this.#queue.close(this.#item, {
      ...{ type: "reasoning", id: this.#item.id, summary: text === "" ? [] : [part] },
      ...(signature === undefined ? {} : { encrypted_content: signature }),
    });
  }
}
