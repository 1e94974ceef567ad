import type { SharedV4ProviderMetadata } from "@ai-sdk/provider";
import { parsedOrNothing } from "../json.ts";
import type { TranslationTarget } from "./translation.ts";

/** What a packed signature begins with. Providers' own signatures never do. */
const PREFIX = "gth1.";

/**
 * A provider's metadata about a part of its answer as a text, for a field that clients return unread. Reasoning is signed
 * there, and some providers refuse the next request without it.
 */
export function packSignature({ kind }: TranslationTarget, metadata: SharedV4ProviderMetadata): string {
  return PREFIX + Buffer.from(JSON.stringify({ kind, metadata })).toString("base64url");
}

/**
 * The metadata that was packed. Undefined if the text is another signature, or of another kind of provider: its reasoning
 * says nothing to this one.
 */
export function unpackSignature(
  { kind }: TranslationTarget,
  packed: string,
): SharedV4ProviderMetadata | undefined {
  if (!packed.startsWith(PREFIX)) return undefined;
  const value = parsedOrNothing(Buffer.from(packed.slice(PREFIX.length), "base64url").toString());
  if (typeof value !== "object" || value === null) return undefined;
  const { kind: signer, metadata } = value as Partial<{ kind: unknown; metadata: unknown }>;
  if (signer !== kind || typeof metadata !== "object" || metadata === null) return undefined;
  return metadata as SharedV4ProviderMetadata;
}
