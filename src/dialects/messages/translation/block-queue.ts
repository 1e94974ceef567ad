import { AnswerTooLarge } from "../../../agents/index.ts";
import type { TypedMembers } from "../../json.ts";

/** The maximum number of characters that wait. A whole answer may have as many. */
const MOST_WAITING = 16 * 1024 * 1024;

/** A block of a streamed message. */
export class StreamedBlock {
  readonly index: number;
  readonly type: string;
  /** Its events, while an earlier block is still open. */
  waiting = "";
  isClosed = false;

  constructor(index: number, type: string) {
    this.index = index;
    this.type = type;
  }
}

/**
 * The blocks of a streamed message. A message has one open block at a time, but a model's parallel tool calls arrive
 * interleaved: the events of a later block wait until those before it are closed.
 */
export class BlockQueue {
  /** The first one is being written; the others wait. */
  readonly #open: StreamedBlock[] = [];
  #text = "";
  #next = 0;
  /** The number of characters that have waited. */
  #waited = 0;

  /** The most recently begun block, unless it is closed. */
  get last(): StreamedBlock | undefined {
    const last = this.#open.at(-1);
    return last?.isClosed ? undefined : last;
  }

  begin(block: TypedMembers): StreamedBlock {
    // Text can continue in another block, so nothing waits for its end.
    if (this.last?.type === "text") this.close(this.last);
    const begun = new StreamedBlock(this.#next++, block.type);
    this.#open.push(begun);
    this.#write(begun, { type: "content_block_start", index: begun.index, content_block: block });
    return begun;
  }

  add(block: StreamedBlock, delta: object): void {
    this.#write(block, { type: "content_block_delta", index: block.index, delta });
  }

  close(block: StreamedBlock): void {
    if (block.isClosed) return;
    this.#write(block, { type: "content_block_stop", index: block.index });
    block.isClosed = true;
    while (this.#open[0]?.isClosed) {
      this.#open.shift();
      const [next] = this.#open;
      if (!next) continue;
      this.#text += next.waiting;
      next.waiting = "";
    }
  }

  closeAll(): void {
    for (const block of [...this.#open]) this.close(block);
  }

  /** Takes the events that can be sent. */
  take(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  #write(block: StreamedBlock, event: TypedMembers): void {
    const text = eventText(event);
    if (block === this.#open[0]) this.#text += text;
    else {
      block.waiting += text;
      this.#waited += text.length;
      if (this.#waited > MOST_WAITING) throw new AnswerTooLarge("The model's answer is too large.");
    }
  }
}

/** An event as Anthropic writes it. */
export function eventText(event: TypedMembers): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
