import { invalidField, Problem } from "../../../base/errors.ts";
import type { ModelTarget } from "../../../models/names.ts";
import { field } from "../../json.ts";
import { referenceOf, requireContainers } from "../references.ts";
import { itemOf, providerOf, type ResponseOwner, type ResponseStore, type StoredResponse } from "./store.ts";

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
  /** Bytes of these texts as a provider reads them. */
  readonly bytes: number;
  /** Whether this provider knows all of these ids. */
  isKnownTo(provider: string): boolean;
}

export interface LinkParts {
  readonly store: ResponseStore;
  readonly owner: ResponseOwner;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** The model that the request goes to; null if it is unknown, or if the conversation is needed anyway. */
  readonly target: ModelTarget | null;
  /** Takes memory for texts that are read. @throws Problem 429 `rate_limited` */
  hold(bytes: number): void;
}

/** OpenAI keeps a response for 30 days. After this shorter time, the conversation is sent instead. */
const NATIVE_MS = 29 * 86_400_000;
const MOST_STEPS = 1_000;
const MOST_BYTES = 10 * 1024 * 1024;

/** What a request refers to by ids. */
interface References {
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
  { previous, references, containers = [] }: References,
): Promise<ResponseLinks> {
  const chain = new LinkedChain(parts);
  if (previous !== null) await chain.readBefore(previous);
  for (const id of references) await chain.readItem(id);
  requireContainers(containers, chain.outputs);
  const { target } = parts;
  const isKnown = target?.kind === "model" && chain.isKnownTo(providerOf(target.id));
  if (previous !== null && !isKnown) await chain.readWhole();
  return chain;
}

/** A chain of responses, read from its end. */
class LinkedChain implements ResponseLinks {
  readonly items = new Map<string, ConversationItem>();
  before: readonly ConversationItem[] = [];
  readonly #parts: LinkParts;
  readonly #responses: StoredResponse[] = [];
  #last: StoredResponse | null = null;
  #held = 0;

  constructor(parts: LinkParts) {
    this.#parts = parts;
  }

  get bytes(): number {
    const named = this.#responses.filter((response) => response !== this.#last);
    return (this.#last?.row.bytes ?? 0) + named.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get outputs(): readonly unknown[] {
    return this.#responses.map(({ response }) => field(response, "output"));
  }

  isKnownTo(provider: string): boolean {
    const { now } = this.#parts;
    return this.#responses.every(
      (response) =>
        response.row.isNative && response.provider === provider && now - response.row.createdAt < NATIVE_MS,
    );
  }

  async readBefore(id: string): Promise<void> {
    this.#last = await this.#read(id, "/previous_response_id");
    this.#responses.push(this.#last);
  }

  async readItem(id: string): Promise<void> {
    const { store, owner } = this.#parts;
    const known = this.#responses.find((response) => itemOf(response, id) !== undefined);
    const response = known ?? (await store.readByItem(owner, id, "/input"));
    if (!known) {
      this.#hold(response.bytes);
      this.#responses.push(response);
    }
    this.items.set(id, { item: itemOf(response, id), provider: response.provider });
  }

  /** Assembles the conversation. */
  async readWhole(): Promise<void> {
    const steps: StoredResponse[] = [];
    for (let step = this.#last; step; ) {
      steps.push(step);
      if (steps.length > MOST_STEPS) throw tooLong();
      const id = field(step.request, "previous_response_id");
      step = typeof id === "string" ? await this.#read(id, "/previous_response_id") : null;
    }
    const before: ConversationItem[] = [];
    for (const { request, response, provider } of steps.reverse()) {
      for (const item of inputItemsOf(field(request, "input"))) {
        const id = referenceOf(item);
        if (id === null) before.push({ item, provider: null });
        else {
          const named = this.items.get(id) ?? (await this.#readOlder(id));
          before.push(named);
        }
      }
      const output = field(response, "output");
      if (Array.isArray(output)) before.push(...output.map((item: unknown) => ({ item, provider })));
    }
    this.before = before;
  }

  /** An item that an earlier request of the conversation named. */
  async #readOlder(id: string): Promise<ConversationItem> {
    const { store, owner } = this.#parts;
    const response = await store.readByItem(owner, id, "/previous_response_id");
    this.#hold(response.bytes);
    return { item: itemOf(response, id), provider: response.provider };
  }

  async #read(id: string, path: string): Promise<StoredResponse> {
    const { store, owner } = this.#parts;
    const response = await store.read(owner, id, path);
    if (!response.isAnswered) throw unanswered(id, path);
    this.#hold(response.bytes);
    return response;
  }

  #hold(bytes: number): void {
    this.#held += bytes;
    if (this.#held > MOST_BYTES) throw tooLong();
    this.#parts.hold(bytes);
  }
}

/** The items of a request's `input`. */
export function inputItemsOf(input: unknown): readonly unknown[] {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  return Array.isArray(input) ? input : [];
}

function unanswered(id: string, path: string): Problem {
  return invalidField(path, `must be the id of a response with an answer; ${id} has none, or has not ended`);
}

function tooLong(): Problem {
  return new Problem(
    "body_too_large",
    "The conversation before this request is too long. Send only the relevant part of it as input.",
  );
}
