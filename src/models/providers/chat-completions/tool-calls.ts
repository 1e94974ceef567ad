import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { generateId, StreamingToolCallTracker } from "@ai-sdk/provider-utils";
import type { ToolCallDelta } from "./chunk.ts";

/** A call whose name has not arrived. */
interface UnnamedCall {
  id: string | null;
  arguments: string;
  extraContent: ToolCallDelta["extra_content"];
}

/**
 * Joins the deltas of tool calls. Some servers send a call's name after its index: what arrives before the name is
 * kept until then, because the tracker refuses calls without names.
 */
export class ToolCallDeltas {
  readonly #tracker: StreamingToolCallTracker<ToolCallDelta>;
  readonly #unnamed = new Map<number, UnnamedCall>();
  readonly #named = new Set<number>();

  /** @param metadataKey the name in the parts' metadata under which signatures are passed on */
  constructor(emit: (part: LanguageModelV4StreamPart) => void, metadataKey: string) {
    this.#tracker = new StreamingToolCallTracker<ToolCallDelta>(
      { enqueue: (part) => emit(part as LanguageModelV4StreamPart) },
      {
        generateId,
        extractMetadata({ extra_content }) {
          const thoughtSignature = extra_content?.google?.thought_signature;
          return thoughtSignature ? { [metadataKey]: { thoughtSignature } } : undefined;
        },
        buildToolCallProviderMetadata: (metadata) => metadata,
      },
    );
  }

  /** @throws InvalidResponseDataError for a call without a name */
  add(delta: ToolCallDelta): void {
    const { index } = delta;
    if (index == null || this.#named.has(index)) {
      this.#tracker.processDelta(delta);
      return;
    }
    const { name, arguments: part } = delta.function;
    const call = this.#unnamed.get(index) ?? { id: null, arguments: "", extraContent: null };
    call.id ??= delta.id ?? null;
    call.extraContent ??= delta.extra_content ?? null;
    call.arguments += part ?? "";
    this.#unnamed.set(index, call);
    if (name == null) return;
    this.#unnamed.delete(index);
    this.#named.add(index);
    this.#tracker.processDelta({
      ...{ index, id: call.id, function: { name, arguments: call.arguments } },
      extra_content: call.extraContent ?? null,
    });
  }

  /**
   * Completes all calls.
   * @throws InvalidResponseDataError if a call never received its name
   */
  end(): void {
    for (const [index, { id, arguments: joined }] of this.#unnamed) {
      this.#tracker.processDelta({ index, id, function: { arguments: joined } });
    }
    this.#tracker.flush();
  }
}
