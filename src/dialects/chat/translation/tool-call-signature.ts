import type { SharedV4ProviderMetadata, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { field } from "../../json.ts";
import { isSigned, packSignature, unpackSignature } from "../../translation/signatures.ts";
import type { TranslationTarget } from "../../translation/translation.ts";

/**
 * What a client has to return with a tool call: Google's models sign the thoughts that led to it. In the field of Google's
 * own chat completions, which clients return unread.
 */
export function toolCallExtra(
  target: TranslationTarget,
  metadata: SharedV4ProviderMetadata | undefined,
): { readonly extra_content?: object } {
  if (metadata === undefined || !isSigned(metadata)) return {};
  return { extra_content: { google: { thought_signature: packSignature(target, metadata) } } };
}

/** The signature that comes back with a tool call. Undefined if there is none of this kind of provider. */
export function readToolCallSignature(
  extra: unknown,
  target: TranslationTarget,
): SharedV4ProviderOptions | undefined {
  const packed = field(field(extra, "google"), "thought_signature");
  return typeof packed === "string" ? unpackSignature(target, packed) : undefined;
}
