import type { SharedV4ProviderMetadata } from "@ai-sdk/provider";
import { field, parsedOrNothing } from "../json.ts";
import type { TranslationTarget } from "./translation.ts";

/** The prefix of packed signatures. Providers' own signatures never begin with it. */
const PREFIX = "gth1.";

/**
 * The members of a provider's metadata that sign a part of an answer. Only these are packed and accepted back: a
 * client can write a packed text itself, and other members would reach the provider as fields of its request.
 */
const SIGNING = ["signature", "redactedData", "thoughtSignature", "reasoningEncryptedContent"];
/** OpenAI's id of the part. Without its encrypted content, it would refer to whatever the account has stored. */
const ITEM = "itemId";
const ENCRYPTED = "reasoningEncryptedContent";

/** The provider that signed. The kind is compared too: another one may have the name after a change of configuration. */
type Origin = Pick<TranslationTarget, "kind" | "provider">;

/** Whether a text is a signature that was packed here. */
export function isPacked(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** Whether a provider has signed a part. */
export function isSigned(metadata: SharedV4ProviderMetadata | undefined): boolean {
  return metadata !== undefined && Object.keys(signing(metadata)).length > 0;
}

/**
 * Packs a provider's metadata about a part of its answer into a text, for a field that clients return unread. The
 * metadata signs reasoning, and some providers refuse the next request without it.
 * @param toolCallId the signed tool call. Default: the signature is for the part that has the text
 */
export function packSignature(
  { kind, provider }: Origin,
  metadata: SharedV4ProviderMetadata,
  toolCallId?: string,
): string {
  const call = toolCallId === undefined ? {} : { toolCallId };
  const packed = { kind, provider, metadata: signing(metadata), ...call };
  return PREFIX + Buffer.from(JSON.stringify(packed)).toString("base64url");
}

/**
 * The unpacked metadata. Undefined if the text is not a packed signature, or comes from another provider: its reasoning
 * belongs to that provider's account, and OpenAI refuses reasoning of another account.
 */
export function unpackSignature(
  { kind, provider }: Origin,
  packed: string,
): SharedV4ProviderMetadata | undefined {
  const value = unpacked(packed);
  const metadata = field(value, "metadata");
  if (field(value, "kind") !== kind || field(value, "provider") !== provider) return undefined;
  return typeof metadata === "object" && metadata !== null ? signing(metadata) : undefined;
}

/**
 * The tool call that a packed text signs; undefined if it signs the part that has it, or is not a packed signature.
 */
export function signedToolCall(packed: string): string | undefined {
  const id = field(unpacked(packed), "toolCallId");
  return typeof id === "string" ? id : undefined;
}

function unpacked(packed: string): unknown {
  if (!isPacked(packed)) return undefined;
  return parsedOrNothing(Buffer.from(packed.slice(PREFIX.length), "base64url").toString());
}

function signing(metadata: object): SharedV4ProviderMetadata {
  const signed = Object.entries(metadata).flatMap(([provider, members]) => {
    const names = typeof field(members, ENCRYPTED) === "string" ? [...SIGNING, ITEM] : SIGNING;
    const texts = names.flatMap((name) => {
      const text = field(members, name);
      return typeof text === "string" ? [[name, text] as const] : [];
    });
    return texts.length === 0 ? [] : [[provider, Object.fromEntries(texts)] as const];
  });
  return Object.fromEntries(signed);
}
