import type { ItemQueue, OutputItem } from "./item-queue.ts";
import type { ClientTool } from "./tool-names.ts";

/** Writes a call to one of the client's tools. */
export class CallWriter {
  /** Whether the provider signed it before it began. */
  readonly isSigned: boolean;
  readonly #queue: ItemQueue;
  readonly #item: OutputItem;
  readonly #head: object;
  #input = "";

  constructor(
    queue: ItemQueue,
    id: string,
    {
      callId,
      tool,
      isSigned,
    }: { readonly callId: string; readonly tool: ClientTool; readonly isSigned: boolean },
  ) {
    this.isSigned = isSigned;
    this.#queue = queue;
    this.#head = { type: "function_call", id, call_id: callId, ...tool };
    const type = "function_call";
    this.#item = queue.begin({ ...this.#head, type, id, arguments: "", status: "in_progress" });
  }

  add(delta: string): void {
    if (delta === "") return;
    this.#input += delta;
    this.#queue.add(this.#item, "response.function_call_arguments.delta", { delta });
  }

  /** @param input the whole input: some models send it only at the end. Undefined if the call was cut off */
  close(input: string | undefined): void {
    if (this.#input === "") this.add(input ?? "");
    const text = this.#input;
    const status = input === undefined ? "incomplete" : "completed";
    this.#queue.add(this.#item, "response.function_call_arguments.done", { arguments: text });
    this.#queue.close(this.#item, { ...this.#head, arguments: text, status });
  }
}
