import type { TypedMembers } from "../../json.ts";
/** An item of a response that is being written. */
export class OutputItem {
  readonly index: number;
  readonly id: string;
  readonly type: string;
  /** Its events, while an earlier item is still open. */
  readonly waiting: TypedMembers[] = [];
  isClosed = false;
  /** The item as it will be when it is closed. */
  final: object;

  constructor(index: number, item: TypedMembers & { readonly id: string }) {
    this.index = index;
    this.id = item.id;
    this.type = item.type;
    this.final = item;
  }
}

/**
 * The items of a streamed response. Clients expect them one after the other, but a model's parallel tool calls arrive
 * interleaved: the events of a later item wait until those before it are closed.
 */
export class ItemQueue {
  /** All items, in order. */
  readonly items: OutputItem[] = [];
  /** The first one is being written; the others wait. */
  readonly #open: OutputItem[] = [];
  #events: TypedMembers[] = [];

  /** The most recently begun item, unless it is closed. */
  get last(): OutputItem | undefined {
    const last = this.#open.at(-1);
    return last?.isClosed ? undefined : last;
  }

  begin(item: TypedMembers & { readonly id: string }): OutputItem {
    const begun = new OutputItem(this.items.length, item);
    this.items.push(begun);
    this.#open.push(begun);
    this.#write(begun, { type: "response.output_item.added", output_index: begun.index, item });
    return begun;
  }

  /** @param more the event's members besides those that identify its item */
  add(item: OutputItem, type: string, more: object): void {
    this.#write(item, { type, item_id: item.id, output_index: item.index, ...more });
  }

  close(item: OutputItem, final: object): void {
    if (item.isClosed) return;
    item.final = final;
    this.#write(item, { type: "response.output_item.done", output_index: item.index, item: final });
    item.isClosed = true;
    while (this.#open[0]?.isClosed) {
      this.#open.shift();
      const [next] = this.#open;
      if (!next) continue;
      this.#events.push(...next.waiting);
      next.waiting.length = 0;
    }
  }

  /** Takes the events that can be sent. */
  take(): readonly TypedMembers[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #write(item: OutputItem, event: TypedMembers): void {
    if (item === this.#open[0]) this.#events.push(event);
    else item.waiting.push(event);
  }
}
