import type { Clock } from "../../base/clock.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import { parseJson } from "../../base/json-limits.ts";
import type { Log } from "../../base/log.ts";
import type { Tx } from "../../store/db.ts";
import type { DialectRequest, StoredAnswer } from "../dialect.ts";
import { countOf, field, parsedOrNothing, textBytesOf } from "../json.ts";
import {
  type Edit,
  edited,
  elementsOf,
  findMembers,
  MemberNames,
  type RequestMembers,
  removals,
} from "../request-bytes.ts";
import { contentSizeOf } from "../sent-files.ts";
import { isPacked } from "../translation/signatures.ts";
import { unsupported } from "../translation/unsupported.ts";
import { filesInRequest } from "./files.ts";
import { hostedTools } from "./hosted-tools.ts";
import { containersIn, referencesIn } from "./references.ts";
import { wholeInput } from "./stored/conversation.ts";
import type { ResponseLinks } from "./stored/linked-conversation.ts";
import { providerOf } from "./stored/owned-response.ts";
import { keepResponse } from "./stored/rows.ts";
import { ResponsesStreamReader } from "./stream.ts";

const MEMBERS = new MemberNames([
  ...["model", "stream", "background", "store", "previous_response_id", "conversation", "input"],
  ...["max_output_tokens", "tools", "prompt"],
]);

/** A client's request for a response, before its references are resolved. */
export interface ReadResponsesRequest {
  readonly bytes: Uint8Array;
  readonly value: unknown;
  readonly members: RequestMembers;
  readonly model: string;
  readonly isStream: boolean;
  /** Whether the client is answered before the model is called. */
  readonly isBackground: boolean;
  /** Whether the client may refer to the response later. */
  readonly isKept: boolean;
  /** The id of the response that it continues. */
  readonly previous: string | null;
  /** The ids of the items that it refers to. */
  readonly references: readonly string[];
  /** The ids of containers that it names. */
  readonly containers: readonly string[];
  /** The provider's own tools that it offers. Undefined if there is none. */
  readonly hostedTools: string | undefined;
}

/** @throws Problem 400 `invalid_json`, `unsupported_parameter`, 404 `not_found`, 422 `validation_failed` */
export function readResponsesRequest(bytes: Uint8Array, value: unknown): ReadResponsesRequest {
  const members = findMembers(bytes, MEMBERS);
  const model = field(value, "model");
  if (typeof model !== "string") throw invalidField("/model", "must be the name of a model");
  const isStream = flagOf(value, "stream") ?? false;
  const isBackground = flagOf(value, "background") ?? false;
  const isKept = flagOf(value, "store") ?? true;
  if (isBackground && !isKept) {
    throw unsupported("store", "cannot be false for a background response, which is read later.");
  }
  if ((field(value, "conversation") ?? null) !== null) {
    throw unsupported("conversation", "is not supported. Continue with previous_response_id.");
  }
  const previous = field(value, "previous_response_id") ?? null;
  if (previous !== null && typeof previous !== "string") {
    throw invalidField("/previous_response_id", "must be the id of a response");
  }
  const references = referencesIn(bytes, members.spans.get("input"), field(value, "input"));
  const containers = containersIn(bytes);
  if ((field(value, "prompt") ?? null) !== null) {
    const shared = "is stored in the provider's account, which all workspaces share.";
    throw unsupported("prompt", `${shared} Send its texts as instructions and input.`);
  }
  const hosted = hostedTools(bytes, value, members);
  return {
    ...{ bytes, value, members, model, isStream, isBackground, isKept, previous, references, containers },
    hostedTools: hosted,
  };
}

/**
 * The request of a background response, as it is sent to the provider: the answer is streamed, and only Gatehouse
 * stores it.
 */
export function asStream({
  bytes,
  members,
}: ReadResponsesRequest): Pick<ReadResponsesRequest, "bytes" | "value"> {
  const { spans, close } = members;
  const sent = Object.entries({ background: false, store: false, stream: true });
  const known = sent.flatMap(([name, value]) => {
    const span = spans.get(name);
    return span ? [{ ...span, text: String(value) }] : [];
  });
  const missing = sent.filter(([name]) => !spans.has(name)).map(([name, value]) => `,"${name}":${value}`);
  const stream = edited(bytes, [...known, { start: close, end: close, text: missing.join("") }]);
  return { bytes: stream, value: parseJson(Buffer.from(stream).toString()) };
}

export interface KeepingParts {
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Stores the answer of a background response.
 * @param bytes of the whole conversation before the answer
 */
export type StoreAnswer = (tx: Tx, answer: StoredAnswer, bytes: number) => Promise<void>;

/**
 * The data that is written for a stored response. It retains nothing of the request, since a stream may take a long
 * time.
 */
class ResponseKeeper {
  /** Size in bytes of the conversation up to the request. */
  readonly #bytes: number;
  readonly #parts: KeepingParts;
  #requestSeq: number | null = null;
  isNative = false;

  constructor(bytes: number, parts: KeepingParts) {
    this.#bytes = bytes;
    this.#parts = parts;
  }

  /** The first attempt's intent has the request's text. */
  begun(intent: number): void {
    this.#requestSeq ??= intent;
  }

  readonly keep = async (tx: Tx, answer: StoredAnswer): Promise<void> => {
    if (this.#requestSeq === null) throw new Error("an answer without an intent was kept");
    const { isNative } = this;
    const requestSeq = this.#requestSeq;
    const { clock, log } = this.#parts;
    await keepResponse(tx, answer, { requestSeq, isNative, bytes: this.#bytes, now: clock.now(), log });
  };
}

/**
 * @param links null if the request refers to nothing
 * @param keepAnswer replaces the usual way of storing the answer
 */
export function responsesRequest(
  request: ReadResponsesRequest,
  links: ResponseLinks | null,
  parts: KeepingParts,
  keepAnswer?: StoreAnswer,
): DialectRequest {
  const { bytes, value, model, isStream, isKept } = request;
  const linkedBytes = links?.bytes ?? 0;
  const { contentBytes, namedBytes } = contentSizeOf(value, filesInRequest(value));
  const { start = 0, end = 0 } = request.members.spans.get("input") ?? {};
  const conversation = end - start + namedBytes + linkedBytes;
  const keeper = new ResponseKeeper(conversation, parts);
  const keep: DialectRequest["keep"] = keepAnswer && ((tx, answer) => keepAnswer(tx, answer, conversation));
  return {
    model,
    isStream,
    size: {
      bytes: bytes.length + namedBytes + linkedBytes,
      contentBytes: contentBytes + linkedBytes,
      textBytes: textBytesOf(value) + linkedBytes,
      answers: 1,
      mostTokens: countOf(field(value, "max_output_tokens")),
    },
    detail: { hosted_tools: request.hostedTools },
    bytesFor(name, id) {
      keeper.isNative = true;
      return bytesFor(request, links, name, providerOf(id));
    },
    valueFor(id) {
      keeper.isNative = false;
      if (!links) return value;
      const input = wholeInput(links, field(value, "input"), providerOf(id));
      return { ...(value as object), input };
    },
    readStream: () => new ResponsesStreamReader(),
    answer: requireNotFailed,
    begun: (intent) => keeper.begun(intent),
    keep: keep ?? (isKept ? keeper.keep : undefined),
  };
}

function bytesFor(
  request: ReadResponsesRequest,
  links: ResponseLinks | null,
  name: string,
  provider: string,
): Uint8Array<ArrayBuffer> {
  const { bytes, value, members } = request;
  const { spans, close } = members;
  const edits: Edit[] = [{ ...spanOf(spans, "model"), text: JSON.stringify(name) }];
  const isKnown = links === null || links.isKnownTo(provider);
  const given = field(value, "input");
  const input = spans.get("input");
  if (!isKnown) {
    const text = JSON.stringify(wholeInput(links, given, provider).filter((item) => !isOwnReasoning(item)));
    edits.push(input ? { ...input, text } : { start: close, end: close, text: `,"input":${text}` });
  } else if (input && Array.isArray(given)) {
    const items = elementsOf(bytes, input);
    edits.push(
      ...removals(
        bytes,
        items.filter((_, index) => isOwnReasoning(given[index])),
      ),
    );
  }
  const previous = spans.get("previous_response_id");
  if (previous && !isKnown) edits.push({ ...previous, text: "null" });
  return edited(bytes, edits);
}

/**
 * Whether this reasoning comes from another provider and Gatehouse packed its signature. OpenAI would refuse the
 * request, so a conversation could not switch models.
 */
function isOwnReasoning(item: unknown): boolean {
  const signature = field(item, "encrypted_content");
  return field(item, "type") === "reasoning" && typeof signature === "string" && isPacked(signature);
}

function spanOf(spans: RequestMembers["spans"], name: string) {
  const span = spans.get(name);
  if (!span) throw new Error(`the request has no ${name}`);
  return span;
}

/** @throws Problem 422 `validation_failed` */
function flagOf(value: unknown, name: string): boolean | null {
  const flag = field(value, name) ?? null;
  if (flag !== null && typeof flag !== "boolean") throw invalidField(`/${name}`, "must be true or false");
  return flag;
}

const FAILED = '"failed"';

/** A whole answer may report a failure only in its status. @throws Problem 502 `provider_failed` */
function requireNotFailed(received: Buffer<ArrayBuffer>): Buffer<ArrayBuffer> {
  if (!received.includes(FAILED)) return received;
  if (field(parsedOrNothing(received.toString()), "status") !== "failed") return received;
  throw new Problem("provider_failed", "The model's provider failed before the answer was complete.");
}
