/** A real HTTP API for tests. It answers as a test specifies, and records its requests. */
import type { JsonObject } from "../../../src/agents/index.ts";
import type { Clock } from "../../../src/base/clock.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { createMask } from "../../../src/base/masking/mask.ts";
import type { OpenApiAuth, OpenApiDefinition } from "../../../src/connectors/definition/definition.ts";
import { specText } from "../../../src/connectors/definition/stored.ts";
import { LargeDocuments } from "../../../src/connectors/openapi/large-documents.ts";
import type { ReadApi } from "../../../src/connectors/openapi/reading/messages.ts";
import { readApi } from "../../../src/connectors/openapi/reading/read-api.ts";
import { openApiSource } from "../../../src/connectors/openapi/source.ts";
import type {
  ConnectorError,
  ToolAnswer,
  ToolDescription,
  ToolSource,
} from "../../../src/connectors/source.ts";
import { expandTool } from "../../../src/connectors/tools/kept-tool.ts";
import { testOutbound } from "../../support/outbound.ts";

export interface Asked {
  readonly method: string;
  /** The path as it came over the wire. */
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly form: FormData | undefined;
}

export interface FakeApi {
  readonly url: string;
  readonly asked: readonly Asked[];
  answer(answer: (request: Request) => Response | Promise<Response>): void;
  close(): Promise<void>;
}

export function startApi(): FakeApi {
  const asked: Asked[] = [];
  let answer: (request: Request) => Response | Promise<Response> = () => Response.json({ ok: true });
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const [, path = "", query = ""] = /^https?:\/\/[^/?]*([^?]*)\??(.*)$/s.exec(request.url) ?? [];
      const type = request.headers.get("content-type") ?? "";
      const form = type.startsWith("multipart/")
        ? ((await request.clone().formData()) as FormData)
        : undefined;
      asked.push({
        method: request.method,
        path,
        query,
        headers: Object.fromEntries(request.headers),
        body: await request.clone().text(),
        form,
      });
      return answer(request);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    asked,
    answer: (next) => {
      answer = next;
    },
    close: () => server.stop(true),
  };
}

export interface SourceOptions {
  readonly baseUrl?: string | null;
  readonly auth?: OpenApiAuth | null;
  /** The stored origin to which the auth may be sent. */
  readonly authOrigin?: string;
  readonly pinOrigin?: (origin: string) => Promise<void>;
  readonly secrets?: readonly string[];
  readonly readApi?: ReadApi;
  readonly clock?: Clock;
  /** The large documents that are being read, and for whom. */
  readonly large?: LargeDocuments;
  readonly workspaceId?: number;
  readonly timeoutMs?: number;
}

const outbound = testOutbound();

export function sourceOf(spec: OpenApiDefinition["spec"], options: SourceOptions = {}): ToolSource {
  return openApiSource(
    { name: "shop" },
    {
      kind: "openapi",
      baseUrl: options.baseUrl ?? null,
      auth: options.auth ?? null,
      ...(options.authOrigin === undefined ? {} : { authOrigin: options.authOrigin }),
    },
    {
      fetch: outbound.fetch,
      secrets: options.secrets ?? [],
      mask: createMask(options.secrets ?? []),
      clock: options.clock ?? systemClock,
      documentMemory: () => (options.large ?? new LargeDocuments()).begin(options.workspaceId ?? 1),
      pinOrigin: options.pinOrigin ?? (async () => {}),
      readSpec: async () => specText(spec),
      // Read in this process: `reading/` has its own tests.
      readApi: options.readApi ?? ((request) => readApi(request)),
      timeoutMs: options.timeoutMs ?? 30_000,
    },
  );
}

/** A document with one operation. */
export function documentOf(operation: JsonObject, path = "/things", method = "get"): JsonObject {
  return {
    openapi: "3.1.0",
    info: { title: "Things", version: "1" },
    servers: [{ url: "https://things.example/api" }],
    paths: { [path]: { [method]: operation } },
  };
}

export async function listOf(
  spec: OpenApiDefinition["spec"],
  options?: SourceOptions,
): Promise<readonly ToolDescription[]> {
  return (await sourceOf(spec, options).list(new AbortController().signal)).map(expandTool);
}

/** Lists the tools and calls the first one, or the one of this name. */
export async function callOne(
  spec: OpenApiDefinition["spec"],
  input: JsonObject,
  options: SourceOptions & { readonly tool?: string } = {},
): Promise<ToolAnswer> {
  const source = sourceOf(spec, options);
  const tools = await source.list(new AbortController().signal);
  const tool = tools.find(({ name }) => options.tool === undefined || name === options.tool);
  if (!tool) throw new Error(`there is no tool ${options.tool}`);
  return source.call(tool, input, { signal: new AbortController().signal, callId: "call_1" });
}

export function textOf(answer: ToolAnswer): string {
  return answer.content.map((block) => String(block.text ?? "")).join("\n");
}

export async function refusal(promise: Promise<unknown>): Promise<Pick<ConnectorError, "fault" | "message">> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error && "fault" in error) return error as ConnectorError;
    throw error;
  }
  throw new Error("it was not refused");
}
