import { invalidField, Problem } from "../../../base/errors.ts";
import { takeTurn } from "../../../base/inflow.ts";
import { field } from "../../json.ts";
import { namedBytesOf } from "../../sent-files.ts";
import { filesInItems } from "../files.ts";
import { referenceOf, requireContainers } from "../references.ts";
import { type OwnedResponse, unknownResponse } from "./owned-response.ts";
import { ConversationSize, conversationTooLong, type JsonSize, membersOf, memoryOf, sizeOf } from "./size.ts";
import type { ResponseOwner, ResponseStore } from "./store.ts";
import { type HoldMemory, oneAtATime } from "./text-reading.ts";

/** An item of a conversation and the provider that made it; null if the client did. */
export interface ConversationItem {
  readonly item: unknown;
  readonly provider: string | null;
}

/** The earlier responses and items that a request refers to. */
export interface ResponseLinks {
  /** The conversation before the request. */
  readonly before: readonly ConversationItem[];
  /** The items that the request names by id. */
  readonly items: ReadonlyMap<string, ConversationItem>;
  /**
   * Size in bytes of this text as a provider reads it: each item as often as it is sent, and NAMED_FILE_BYTES for each
   * file that an item only names.
   */
  readonly bytes: number;
  /** Whether this provider knows all of these ids. */
  isKnownTo(provider: string): boolean;
}

export interface LinkParts {
  readonly store: ResponseStore;
  readonly owner: ResponseOwner;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** The providers that the request may go to; null if the conversation is needed anyway. */
  readonly providers: readonly string[] | null;
  /**
   * Whether earlier responses may be missing. A missing response is then left out, together with the responses before
   * it. Otherwise the request fails with 404.
   */
  readonly mayMiss?: boolean;
  readonly hold: HoldMemory;
}

/** OpenAI keeps a response for 30 days. After this shorter time, the conversation is sent instead. */
const NATIVE_MS = 29 * 86_400_000;
/** The maximum number of responses in a conversation, and of responses read for a request. */
const MOST_STEPS = 1_000;
const MOST_RESPONSES = 2_048;

/** The references of a request. */
interface References {
  /** Its own items. */
  readonly input: readonly unknown[];
  readonly previous: string | null;
  readonly references: readonly string[];
  readonly containers?: readonly string[];
}

/**
 * Resolves a request's references. All of them MUST belong to its caller, since all callers share the provider's
 * account.
 * @throws Problem 404 `not_found`, 413 `body_too_large`, 422 `validation_failed`, 429 `rate_limited`
 */
export async function resolveLinks(
  parts: LinkParts,
  { input, previous, references, containers = [] }: References,
): Promise<ResponseLinks> {
  const { providers } = parts;
  const chain = new LinkedChain(parts);
  if (previous !== null) await chain.readBefore(previous);
  for (const id of references) await chain.readItem(id);
  chain.countReferences(input);
  requireContainers(containers, chain.outputsFor(providers ?? []));
  const isKnown = providers?.every((provider) => chain.isKnownTo(provider)) ?? false;
  if (!isKnown) await chain.readWhole(input);
  return chain;
}

/** A response that was read. The rest of its answer, such as its tools, is not kept in memory. */
interface Step {
  readonly response: OwnedResponse;
  readonly output: readonly unknown[];
  readonly size: JsonSize;
}

interface MadeItem {
  readonly item: ConversationItem;
  readonly step: Step;
}

/** A chain of responses, read from its end. Each answer is read once. */
class LinkedChain implements ResponseLinks {
  readonly items = new Map<string, ConversationItem>();
  before: readonly ConversationItem[] = [];
  readonly #parts: LinkParts;
  /** All responses that were read, by id. */
  readonly #steps = new Map<string, Step>();
  /** The items in their outputs, by id. */
  readonly #made = new Map<string, MadeItem>();
  /** The sizes of the items that are named by id, which may occur several times. */
  readonly #sizes = new Map<ConversationItem, JsonSize>();
  /** The responses that the request itself refers to. */
  readonly #named = new Set<Step>();
  /** The answers that were read. Each counts once. */
  readonly #answers = new ConversationSize(Infinity);
  /** The conversation as it is sent. Each item counts as often as it occurs. */
  readonly #sent = new ConversationSize();
  /** The bytes of the items that the request names, each as often as it is named. */
  #referenceBytes = 0;
  /** The bytes that count for the files that earlier requests name. */
  #namedFileBytes = 0;
  readonly #reading: HoldMemory;
  #last: Step | null = null;
  #isWhole = false;

  constructor(parts: LinkParts) {
    this.#parts = parts;
    this.#reading = oneAtATime(parts.hold);
  }

  get bytes(): number {
    if (this.#isWhole) return this.#sent.bytes + this.#namedFileBytes;
    // Until the conversation is read, its length is known from the last response.
    return (this.#last?.response.row.bytes ?? 0) + this.#referenceBytes;
  }

  /**
   * The outputs of the responses that the request refers to, provided that only their own provider can receive the
   * request.
   */
  outputsFor(providers: readonly string[]): readonly unknown[] {
    const [provider, ...others] = providers;
    if (provider === undefined || others.length > 0) return [];
    const steps = [...this.#named].filter(({ response }) => response.provider === provider);
    return steps.map(({ output }) => output);
  }

  isKnownTo(provider: string): boolean {
    const { now } = this.#parts;
    return [...this.#named].every(
      ({ response: { row, provider: maker } }) =>
        row.isNative && maker === provider && now - row.createdAt < NATIVE_MS,
    );
  }

  async readBefore(id: string): Promise<void> {
    this.#last = await this.#read(id);
    if (this.#last) this.#named.add(this.#last);
  }

  async readItem(id: string): Promise<void> {
    const made = await this.#item(id, "/input");
    if (made === null) return;
    this.items.set(id, made.item);
    this.#named.add(made.step);
  }

  /** Counts the items that the request names. @param input the request's own items */
  countReferences(input: readonly unknown[]): void {
    for (const item of input) {
      const named = this.items.get(referenceOf(item) ?? "");
      if (named) this.#referenceBytes += this.#sizeOf(named).bytes;
    }
  }

  /** Assembles the conversation. @param input the request's own items */
  async readWhole(input: readonly unknown[]): Promise<void> {
    const own = input.map((item) => itemSent(this, item));
    // The size of the request itself is already limited.
    for (const each of own) this.#count(each, 0);
    const parts: (readonly ConversationItem[])[] = [];
    for (let steps = 0, step = this.#last; step; steps++) {
      if (steps === MOST_STEPS) throw conversationTooLong();
      const { response, output, size } = step;
      this.#sent.add(size);
      parts.push(output.map((item) => ({ item, provider: response.provider })));
      const request = await response.readRequest(this.#reading);
      parts.push(await this.#inputOf(request));
      const previous = field(request, "previous_response_id");
      step = typeof previous === "string" ? await this.#read(previous) : null;
    }
    this.before = parts.reverse().flat();
    this.#isWhole = true;
    const { bytes, members } = this.#sent;
    // Processing the conversation takes as long as reading it.
    const turn = takeTurn(this.#parts.owner.workspaceId, { bytes, lines: members });
    if (turn) await turn;
  }

  /** The items of a stored request. */
  async #inputOf(request: unknown): Promise<readonly ConversationItem[]> {
    const items: ConversationItem[] = [];
    const own = new ConversationSize();
    for (const item of inputItemsOf(field(request, "input"))) {
      const id = referenceOf(item);
      const named = id === null ? null : await this.#item(id, "/previous_response_id");
      const each = named?.item ?? { item, provider: null };
      const size = this.#count(each);
      if (!named) {
        own.add(size);
        this.#namedFileBytes += namedBytesOf(filesInItems([item]));
      }
      items.push(each);
    }
    this.#parts.hold(memoryOf(own));
    return items;
  }

  /** Counts an item that is sent. @param ownBytes the bytes of a client's item; default: measured */
  #count(each: ConversationItem, ownBytes?: number): JsonSize {
    const isOwn = each.provider === null;
    const size =
      isOwn && ownBytes !== undefined
        ? { bytes: ownBytes, members: membersOf([each.item]) }
        : this.#sizeOf(each);
    this.#sent.add(size);
    return size;
  }

  #sizeOf(each: ConversationItem): JsonSize {
    const known = this.#sizes.get(each);
    if (known) return known;
    const size = sizeOf([each.item]);
    if (each.provider !== null) this.#sizes.set(each, size);
    return size;
  }

  /** An item that a request names. Null if it is not stored and may be missing. */
  async #item(id: string, path: string): Promise<MadeItem | null> {
    const known = this.#made.get(id);
    if (known) return known;
    const { store, owner } = this.#parts;
    return this.#unlessMissing(async () => {
      await this.#add(await store.findByItem(owner, id, path));
      const made = this.#made.get(id);
      if (!made) throw unknownResponse(id, path);
      return made;
    });
  }

  /** Null if the response is not stored and may be missing. */
  async #read(id: string): Promise<Step | null> {
    const known = this.#steps.get(id);
    if (known) return known;
    const { store, owner } = this.#parts;
    return this.#unlessMissing(async () => {
      const response = await store.find(owner, id, "/previous_response_id");
      if (!response.isAnswered) throw unanswered(id);
      return this.#add(response);
    });
  }

  async #add(response: OwnedResponse): Promise<Step> {
    const { row, provider } = response;
    const known = this.#steps.get(row.id);
    if (known) return known;
    if (this.#steps.size === MOST_RESPONSES) throw conversationTooLong();
    const made = field(await response.readAnswer(this.#reading), "output");
    const output: readonly unknown[] = Array.isArray(made) ? made : [];
    const step = { response, output, size: sizeOf(output) };
    this.#answers.add(step.size);
    this.#parts.hold(memoryOf(step.size));
    this.#steps.set(row.id, step);
    for (const item of output) {
      const id = field(item, "id");
      if (typeof id !== "string" || this.#made.has(id)) continue;
      this.#made.set(id, { item: { item, provider }, step });
    }
    return step;
  }

  async #unlessMissing<Found>(read: () => Promise<Found>): Promise<Found | null> {
    try {
      return await read();
    } catch (error) {
      const isMissing = error instanceof Problem && error.code === "not_found";
      if (isMissing && this.#parts.mayMiss) return null;
      throw error;
    }
  }
}

/** The items of a request's `input`. */
export function inputItemsOf(input: unknown): readonly unknown[] {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  return Array.isArray(input) ? input : [];
}

/** An item of a request, as it is sent to a provider that knows none of its ids. */
export function itemSent({ items }: Pick<ResponseLinks, "items">, item: unknown): ConversationItem {
  const id = field(item, "id");
  // An item with its content is also replaced if the request names it elsewhere only by its id.
  const linked = referenceOf(item) ?? (typeof id === "string" ? id : null);
  return (linked === null ? undefined : items.get(linked)) ?? { item, provider: null };
}

function unanswered(id: string): Problem {
  return invalidField(
    "/previous_response_id",
    `must be the id of a response with an answer; ${id} has none, or has not ended`,
  );
}
