import { invalidField, Problem } from "../../../base/errors.ts";
import type { ModelTarget } from "../../../models/names.ts";
import { field } from "../../json.ts";
import { referenceOf, requireContainers } from "../references.ts";
import { providerOf, type ResponseOwner, type ResponseStore, type StoredResponse } from "./store.ts";

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
  /** Whether earlier responses may be missing: they are then left out, with those before them. Default: 404. */
  readonly mayMiss?: boolean;
  /** Takes memory for texts that are kept. @throws Problem 429 `rate_limited` */
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

/** What a conversation takes from one of its responses. The rest of the texts, such as tools, is not kept. */
interface Step extends Pick<StoredResponse, "row" | "provider"> {
  readonly input: readonly unknown[];
  readonly output: readonly unknown[];
  /** The id of the response that it continues. */
  readonly previous: string | null;
  /** Bytes of its input and output. */
  readonly bytes: number;
}

function stepOf({ row, provider, request, response }: StoredResponse): Step {
  const input = inputItemsOf(field(request, "input"));
  const outputs = field(response, "output");
  const output: readonly unknown[] = Array.isArray(outputs) ? outputs : [];
  const id = field(request, "previous_response_id");
  const previous = typeof id === "string" ? id : null;
  return {
    row,
    provider,
    input,
    output,
    previous,
    bytes: Buffer.byteLength(JSON.stringify([input, output])),
  };
}

/** A chain of responses, read from its end. Each is read and counted once. */
class LinkedChain implements ResponseLinks {
  readonly items = new Map<string, ConversationItem>();
  before: readonly ConversationItem[] = [];
  readonly #parts: LinkParts;
  /** All responses that were read, by id. */
  readonly #steps = new Map<string, Step>();
  /** The items that they have made, by id. */
  readonly #made = new Map<string, { readonly item: ConversationItem; readonly step: Step }>();
  /** The responses that the request itself refers to. */
  readonly #named = new Set<Step>();
  #last: Step | null = null;
  #held = 0;
  #isWhole = false;

  constructor(parts: LinkParts) {
    this.#parts = parts;
  }

  get bytes(): number {
    const last = this.#last;
    // Until the conversation is read, its length is known from the last response.
    return !last || this.#isWhole ? this.#held : this.#held - last.bytes + last.row.bytes;
  }

  get outputs(): readonly unknown[] {
    return [...this.#named].map(({ output }) => output);
  }

  isKnownTo(provider: string): boolean {
    const { now } = this.#parts;
    return [...this.#named].every(
      (step) => step.row.isNative && step.provider === provider && now - step.row.createdAt < NATIVE_MS,
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

  /** Assembles the conversation. */
  async readWhole(): Promise<void> {
    const steps: Step[] = [];
    for (
      let step = this.#last;
      step;
      step = step.previous === null ? null : await this.#read(step.previous)
    ) {
      steps.push(step);
      if (steps.length > MOST_STEPS) throw tooLong();
    }
    const before: ConversationItem[] = [];
    for (const { input, output, provider } of steps.reverse()) {
      for (const item of input) {
        const id = referenceOf(item);
        const named = id === null ? null : await this.#item(id, "/previous_response_id");
        before.push(named?.item ?? { item, provider: null });
      }
      before.push(...output.map((item) => ({ item, provider })));
    }
    this.before = before;
    this.#isWhole = true;
  }

  /** An item that a request names. Null if it is not stored and may be missing. */
  async #item(id: string, path: string) {
    const made = this.#made.get(id);
    if (made) return made;
    const { store, owner } = this.#parts;
    const response = await this.#unlessMissing(store.readByItem(owner, id, path));
    if (response) this.#add(response);
    return this.#made.get(id) ?? null;
  }

  /** Null if the response is not stored and may be missing. */
  async #read(id: string): Promise<Step | null> {
    const known = this.#steps.get(id);
    if (known) return known;
    const { store, owner } = this.#parts;
    const response = await this.#unlessMissing(store.read(owner, id, "/previous_response_id"));
    if (response && !response.isAnswered) throw unanswered(id);
    return response && this.#add(response);
  }

  #add(response: StoredResponse): Step {
    const known = this.#steps.get(response.row.id);
    if (known) return known;
    const step = stepOf(response);
    this.#held += step.bytes;
    if (this.#held > MOST_BYTES) throw tooLong();
    this.#parts.hold(step.bytes);
    this.#steps.set(response.row.id, step);
    for (const item of step.output) {
      const id = field(item, "id");
      if (typeof id !== "string" || this.#made.has(id)) continue;
      this.#made.set(id, { item: { item, provider: step.provider }, step });
    }
    return step;
  }

  async #unlessMissing(reading: Promise<StoredResponse>): Promise<StoredResponse | null> {
    try {
      return await reading;
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

function unanswered(id: string): Problem {
  return invalidField(
    "/previous_response_id",
    `must be the id of a response with an answer; ${id} has none, or has not ended`,
  );
}

function tooLong(): Problem {
  return new Problem(
    "body_too_large",
    "The conversation before this request is too long. Send only the relevant part of it as input.",
  );
}
