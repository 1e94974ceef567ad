import type {
  LanguageModelV4ReasoningPart,
  SharedV4ProviderMetadata,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { field } from "../../json.ts";
import { isSigned, type PackedSignatures, packSignature } from "../../translation/signatures.ts";
import type { TranslationTarget } from "../../translation/translation.ts";

/** The member of a tool call's `extra_content` that contains the thoughts. */
export const GATEHOUSE = "gatehouse";

interface Thought {
  readonly texts: string[];
  readonly signatures: SharedV4ProviderMetadata[];
}

/**
 * The thoughts that a provider signs before it calls a tool. Some of Anthropic's models refuse the call's result
 * without them. Chat completions have no field for thoughts, so they travel with the call.
 */
export class SignedThoughts {
  readonly #thoughts = new Map<string, Thought>();

  /** @param id the block that the text and the signature belong to */
  add(id: string, text: string, metadata: SharedV4ProviderMetadata | undefined): void {
    const known = this.#thoughts.get(id);
    const thought = known ?? { texts: [], signatures: [] };
    if (!known) this.#thoughts.set(id, thought);
    thought.texts.push(text);
    if (metadata && isSigned(metadata)) thought.signatures.push(metadata);
  }

  /** Takes all signed thoughts, for the next call. */
  take(target: TranslationTarget): readonly object[] {
    const signed = [...this.#thoughts.values()].flatMap(({ texts, signatures }) => {
      const last = signatures.at(-1);
      return last ? [{ text: texts.join(""), signature: packSignature(target, last) }] : [];
    });
    this.#thoughts.clear();
    return signed;
  }
}

/**
 * The members that a client must return with a tool call: the thoughts that led to it and the call's signature, in
 * the field that Google's own chat completions use. Clients return both unchanged.
 */
export function toolCallExtra(
  target: TranslationTarget,
  metadata: SharedV4ProviderMetadata | undefined,
  thoughts: readonly object[],
): { readonly extra_content?: object } {
  const signed = metadata && isSigned(metadata);
  if (!signed && thoughts.length === 0) return {};
  return {
    extra_content: {
      ...(signed ? { google: { thought_signature: packSignature(target, metadata) } } : {}),
      ...(thoughts.length > 0 ? { [GATEHOUSE]: { thoughts } } : {}),
    },
  };
}

/** The signature that a client returns with a tool call. Undefined if there is none from this provider. */
export function readToolCallSignature(
  extra: unknown,
  signatures: PackedSignatures,
  path: string,
): SharedV4ProviderOptions | undefined {
  return signatureOf(
    field(field(extra, "google"), "thought_signature"),
    signatures,
    `${path}.google.thought_signature`,
  );
}

/** The thoughts from this provider that a client returns with a tool call. */
export function readThoughts(
  extra: unknown,
  signatures: PackedSignatures,
  path: string,
): LanguageModelV4ReasoningPart[] {
  const thoughts = field(field(extra, GATEHOUSE), "thoughts");
  if (!Array.isArray(thoughts)) return [];
  return thoughts.flatMap((thought, index): LanguageModelV4ReasoningPart[] => {
    const text = field(thought, "text");
    const at = `${path}.${GATEHOUSE}.thoughts[${index}].signature`;
    const providerOptions = signatureOf(field(thought, "signature"), signatures, at);
    return typeof text === "string" && providerOptions ? [{ type: "reasoning", text, providerOptions }] : [];
  });
}

function signatureOf(
  packed: unknown,
  signatures: PackedSignatures,
  path: string,
): SharedV4ProviderOptions | undefined {
  const metadata = signatures.unpack(packed, path)?.metadata;
  return isSigned(metadata) ? metadata : undefined;
}
