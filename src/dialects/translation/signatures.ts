import type { SharedV4ProviderMetadata } from "@ai-sdk/provider";
import { findExcess } from "../../base/json-limits.ts";
import type { JsonTexts } from "../../base/nested-json.ts";
import { field } from "../json.ts";
import { jsonAt } from "./fields.ts";
import type { TranslationTarget } from "./translation.ts";

/** The prefix of packed signatures. Providers' own signatures never begin with it. */
const PREFIX = "gth1.";

/**
 * The members of a provider's metadata that sign a part of an answer. Only these are packed and accepted back: a
 * client can write a packed string itself, and other members would reach the provider as fields of its request.
 */
const SIGNING = ["signature", "redactedData", "thoughtSignature", "reasoningEncryptedContent"];
/** OpenAI's id of the part. Without its encrypted content, it would refer to whatever the account has stored. */
const ITEM = "itemId";
const ENCRYPTED = "reasoningEncryptedContent";

/** The longest packed string: more than the encrypted reasoning of 100,000 tokens takes. */
const MOST_CHARACTERS = 1024 * 1024;
/** Maximum number of members in a packed string. */
const MOST_MEMBERS = 64;

/**
 * The provider that signed. Its kind is compared too, because a changed configuration may give the same name to
 * another kind.
 */
type Origin = Pick<TranslationTarget, "kind" | "provider">;

/** Whether a string is a signature that was packed here. */
export function isPacked(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** Whether a provider has signed a part. */
export function isSigned(metadata: SharedV4ProviderMetadata | undefined): boolean {
  return metadata !== undefined && Object.keys(signing(metadata)).length > 0;
}

/**
 * Packs a provider's metadata about a part of its answer into a string, for a field that clients return unchanged.
 * The metadata signs reasoning, and some providers refuse the next request without it.
 * @param toolCallId the signed tool call. Default: the signature is for the part that contains the packed string
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

/** A signature that was unpacked. */
export interface Signature {
  readonly metadata: SharedV4ProviderMetadata;
  /** The tool call that is signed; undefined if the signature is for the part that contains it. */
  readonly toolCallId: string | undefined;
}

/** The signatures in one request. */
export class PackedSignatures {
  readonly #origin: Origin;
  readonly #texts: JsonTexts;
  /** Some signatures are read twice: first to find the tool calls that they sign. */
  readonly #unpacked = new Map<string, Signature | undefined>();

  constructor(origin: Origin, texts: JsonTexts) {
    this.#origin = origin;
    this.#texts = texts;
  }

  /**
   * Unpacks a signature. Undefined if the string is not a packed signature, or comes from another provider: its
   * reasoning belongs to that provider's account, and OpenAI refuses reasoning from another account.
   * @param path its location in the request
   * @throws Problem 413 `body_too_large`
   */
  unpack(packed: unknown, path: string): Signature | undefined {
    if (typeof packed !== "string" || !isPacked(packed)) return undefined;
    if (packed.length > MOST_CHARACTERS) return undefined;
    if (this.#unpacked.has(packed)) return this.#unpacked.get(packed);
    const signature = this.#read(packed, path);
    this.#unpacked.set(packed, signature);
    return signature;
  }

  #read(packed: string, path: string): Signature | undefined {
    const json = Buffer.from(packed.slice(PREFIX.length), "base64url");
    // Gatehouse packs no signature with more members.
    if (findExcess(json, { members: MOST_MEMBERS })) return undefined;
    const value = jsonAt(json.toString(), path, this.#texts);
    const { kind, provider } = this.#origin;
    if (field(value, "kind") !== kind || field(value, "provider") !== provider) return undefined;
    const [metadata, toolCallId] = [field(value, "metadata"), field(value, "toolCallId")];
    if (typeof metadata !== "object" || metadata === null) return undefined;
    return {
      metadata: signing(metadata),
      toolCallId: typeof toolCallId === "string" ? toolCallId : undefined,
    };
  }
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
