import type { JsonObject } from "../../agents/index.ts";
import type { Clock } from "../../base/clock.ts";
import type { Mask } from "../../base/masking/mask.ts";
import type { Via } from "../../base/via.ts";
import type { OpenApiDefinition } from "../definition/definition.ts";
import { asConnectorError } from "../outbound/errors.ts";
import type { OutboundFetch, OutboundInit } from "../outbound/fetch.ts";
import { ConnectorError, type ToolAnswer, type ToolSource } from "../source.ts";
import { bindingOf, type KeptTool } from "../tools/kept-tool.ts";
import { answerOf } from "./answer/answer.ts";
import { AuthOrigin, type PinOrigin } from "./auth-origin.ts";
import { asOperationBinding } from "./binding.ts";
import { reservedName } from "./call/auth.ts";
import { type ApiRequest, requestOf } from "./call/request.ts";
import { ArgumentFault, CUT, DocumentFault } from "./fault.ts";
import type { DocumentMemory } from "./large-documents.ts";
import { checkBase } from "./operations/servers.ts";
import { fetchDocument } from "./read.ts";
import type { ReadApi } from "./reading/messages.ts";

/** Dependencies of an HTTP API's source. */
export interface OpenApiParts {
  /** Checks addresses and follows redirects only within the origin. Every request goes through it. */
  readonly fetch: OutboundFetch;
  /** The definition's secrets. */
  readonly secrets: readonly string[];
  /** Masks these secrets. All output of the API goes through it before anyone sees it. */
  readonly mask: Mask;
  readonly clock: Clock;
  /** Called once in a connector's life with the origin that may receive its auth, if the document decides it. */
  readonly pinOrigin: PinOrigin;
  /** The document, or its URL. @throws ConnectorError */
  readonly readSpec: () => Promise<string>;
  readonly readApi: ReadApi;
  /** Room for one document in memory. */
  readonly documentMemory: () => DocumentMemory;
  /** The total time limit of a call, and of listing the tools. */
  readonly timeoutMs: number;
}

/** Maximum number of characters of a message about a document. */
const MESSAGE_LIMIT = 1_000;

/**
 * The tools of an HTTP API that an OpenAPI document (3.0, 3.1) describes: one per operation. Each call is one
 * request, which is never repeated automatically. No connection is held between calls.
 */
export function openApiSource(
  { name }: { readonly name: string },
  definition: Omit<OpenApiDefinition, "spec">,
  parts: OpenApiParts,
): ToolSource {
  const { fetch, mask, secrets, clock, timeoutMs } = parts;
  const who = `The connector ${name}`;
  const closing = new AbortController();
  const open = new Set<Promise<unknown>>();
  const authOrigin = new AuthOrigin(definition, parts.pinOrigin);
  /** The last successful listing, for as long as its tools are still in use. */
  let last: { readonly hash: string; readonly tools: WeakRef<readonly KeptTool[]> } | undefined;
  let omitted: string | null = null;

  /** Runs `work` under the time limit. @throws ConnectorError */
  function within<Value>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const running = run(signal, work);
    const ended = running.then(
      () => {},
      () => {}, // the caller receives the error
    );
    open.add(ended);
    void ended.then(() => open.delete(ended));
    return running;
  }

  async function run<Value>(
    caller: AbortSignal,
    work: (signal: AbortSignal) => Promise<Value>,
  ): Promise<Value> {
    const limit = new AbortController();
    const cancel = clock.after(timeoutMs, () => limit.abort());
    const signal = AbortSignal.any([caller, closing.signal, limit.signal]);
    try {
      signal.throwIfAborted();
      return await work(signal);
    } catch (error) {
      // The order matters: an abort causes errors of other kinds.
      if (closing.signal.aborted) throw new ConnectorError("unreachable", `${who} was closed.`);
      if (caller.aborted)
        throw new ConnectorError("cancelled", `The call to the connector ${name} was cancelled.`);
      if (limit.signal.aborted) {
        throw new ConnectorError("timeout", `${who} did not answer within ${timeoutMs} ms.`);
      }
      throw worded(error);
    } finally {
      cancel();
    }
  }

  /** Any other error is a bug in the gateway. */
  function worded(error: unknown): unknown {
    if (error instanceof DocumentFault) {
      // Without its cause, which contains the unmasked text.
      return new ConnectorError("invalid_answer", `${who}: ${shown(error.message)}.`);
    }
    if (!(error instanceof ConnectorError) || error.message.startsWith(who)) return error;
    return new ConnectorError(error.fault, `${who}: ${shown(error.message)}`);
  }

  async function ask(url: string | URL, init?: OutboundInit): Promise<Response> {
    try {
      return await fetch(url, init);
    } catch (error) {
      throw asConnectorError(error, who);
    }
  }

  function shown(text: string): string {
    // The mask must know where a quotation was cut.
    const pieces = mask.text(text).split(CUT);
    const masked = pieces
      .map((piece, index) => mask.text(piece, { end: index < pieces.length - 1 }))
      .join(CUT);
    return masked.length > MESSAGE_LIMIT ? `${masked.slice(0, MESSAGE_LIMIT).toWellFormed()}${CUT}` : masked;
  }

  const baseUrl = () => (definition.baseUrl === null ? null : checkBase(definition.baseUrl, "base_url"));

  function requestFor(tool: KeptTool, input: JsonObject): ApiRequest {
    const binding = asOperationBinding(bindingOf(tool));
    const base = baseUrl() ?? binding?.server;
    if (binding === undefined || base == null || authOrigin.isOpen) {
      throw new ConnectorError(
        "invalid_answer",
        `${who} must be refreshed before this call: ${tool.name} has changed.`,
      );
    }
    return requestOf(binding, base, authOrigin.covers(base) ? definition.auth : null, input);
  }

  async function list(caller: AbortSignal): Promise<readonly KeptTool[]> {
    const memory = parts.documentMemory();
    try {
      return await listIn(memory, AbortSignal.any([caller, memory.signal]));
    } catch (error) {
      throw memory.signal.aborted ? memory.signal.reason : error;
    } finally {
      memory.release();
    }
  }

  async function listIn({ grow }: DocumentMemory, signal: AbortSignal): Promise<readonly KeptTool[]> {
    const hasBase = baseUrl() !== null;
    const { text, url } = await fetchDocument(await parts.readSpec(), ask, signal, grow);
    const hash = new Bun.CryptoHasher("sha256").update(text).digest("hex");
    const known = last?.hash === hash ? last.tools.deref() : undefined;
    if (known) return known;
    const reserved = reservedName(definition.auth);
    const listing = await parts.readApi({ text, url, hasBase, reserved, secrets }, signal);
    if ("fault" in listing) throw new DocumentFault(listing.fault);
    const { tools, server, leftOut, leftOutCount } = listing;
    if (server !== null) {
      authOrigin.check(server);
      await authOrigin.settle(server);
    }
    omitted = leftOutCount === 0 ? null : omissions(leftOut.map(shown), leftOutCount);
    last = { hash, tools: new WeakRef(tools) };
    return tools;
  }

  async function call(tool: KeptTool, input: JsonObject, signal: AbortSignal, via: Via): Promise<ToolAnswer> {
    let request: ApiRequest;
    try {
      request = requestFor(tool, input);
    } catch (error) {
      if (!(error instanceof ArgumentFault)) throw error;
      // The connector works: the caller has to correct its arguments.
      const text = `Nothing was sent: ${shown(error.message)}.`;
      return { content: [{ type: "text", text }], isError: true };
    }
    const response = await ask(request.url, { ...request.init, signal, via });
    return answerOf(response, request.url, mask, signal);
  }

  return {
    get omitted() {
      return omitted;
    },
    list: (signal) => within(signal, list),
    call: (tool, input, { signal, via = [] }) => within(signal, (limited) => call(tool, input, limited, via)),
    async close() {
      closing.abort();
      await Promise.all(open);
    },
  };
}

/** A sentence that names the first operations, as many as a message can hold. */
function omissions(named: readonly string[], count: number): string {
  const told: string[] = [];
  let length = 0;
  for (const each of named) {
    length += each.length;
    if (told.length > 0 && length > MESSAGE_LIMIT) break;
    told.push(each);
  }
  const rest = count > told.length ? `; and ${count - told.length} more` : "";
  const what =
    count === 1 ? "1 operation is not offered as a tool" : `${count} operations are not offered as tools`;
  return `${what}: ${told.join("; ")}${rest}.`;
}
