/**
 * The upstream to be stopped: its model never stops talking and its tools never answer. It runs in a separate
 * process, which also presses the stop button, so that one clock measures both ends.
 */
import type { Static } from "typebox";
import { BACKGROUND, WAITING_TOOL } from "../oversight/names.ts";
import { answerLines } from "../processes/lines.ts";
import { overseenJob } from "./config.ts";

const BETWEEN_CHUNKS_MS = 50;
const LONGEST_MS = 30_000;
const encoder = new TextEncoder();
const CHUNK = frame({ content: "a few words " });

type Job = Static<typeof overseenJob.schema>;

/** Calls in flight, apart from those that only keep the server busy. */
class Watched {
  #open = 0;
  #closed: number[] = [];
  #changed = Promise.withResolvers<void>();

  /** @returns a function to call, at least once, when the caller has hung up or withdrawn its call */
  opened(): () => void {
    this.#open++;
    this.#tell();
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#open--;
      this.#closed.push(now());
      this.#tell();
    };
  }

  async untilOpen(count: number): Promise<void> {
    await this.#until(() => this.#open >= count);
  }

  forget(): void {
    this.#closed = [];
  }

  /** When the last of this many calls was closed. */
  async lastClosed(count: number): Promise<number> {
    await this.#until(() => this.#closed.length >= count);
    return Math.max(...this.#closed);
  }

  async #until(condition: () => boolean): Promise<void> {
    const patience = AbortSignal.timeout(LONGEST_MS);
    const late = new Promise<void>((_, reject) =>
      patience.addEventListener("abort", () => reject(new Error(`${this.#open} calls are in flight now`))),
    );
    late.catch(() => {}); // nothing waits for it any more
    while (!condition()) await Promise.race([this.#changed.promise, late]);
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

const watched = new Watched();
/** Calls to the tool over stdio, which reports them one after another. */
const told: (() => void)[] = [];
const called = new Map<unknown, () => void>();

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  development: false,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (request.method !== "POST") return new Response(null, { status: 405 });
    if (pathname === "/told/open") told.push(watched.opened());
    else if (pathname === "/told/closed") told.shift()?.();
    else if (pathname === "/mcp") return answerMcp(request);
    else return talk(request);
    return new Response();
  },
});

async function talk(request: Request): Promise<Response> {
  const body = (await request.json()) as {
    messages: { role: string; content: unknown }[];
    tools?: { function: { name: string } }[];
  };
  const prompt = body.messages.findLast(({ role }) => role === "user")?.content;
  const tool = body.tools?.[0]?.function.name;
  const headers = { "content-type": "text/event-stream" };
  if (tool !== undefined) {
    const call = { index: 0, id: "call_0", type: "function", function: { name: tool, arguments: "{}" } };
    const text = [frame({ tool_calls: [call] }), frame({}, "tool_calls"), encoder.encode("data: [DONE]\n\n")];
    return new Response(Buffer.concat(text), { headers });
  }
  const closed = prompt === BACKGROUND ? () => {} : watched.opened();
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      const timer = setInterval(() => controller.enqueue(CHUNK), BETWEEN_CHUNKS_MS);
      controller.enqueue(CHUNK);
      request.signal.addEventListener("abort", () => {
        closed();
        clearInterval(timer);
      });
    },
  });
  return new Response(stream, { headers });
}

function frame(delta: object, finish: string | null = null): Uint8Array {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return encoder.encode(`data: ${JSON.stringify({ object: "chat.completion.chunk", choices })}\n\n`);
}

async function answerMcp(request: Request): Promise<Response> {
  const { id, method, params } = (await request.json()) as {
    id?: unknown;
    method?: string;
    params?: { protocolVersion?: string; requestId?: unknown };
  };
  if (method === "notifications/cancelled") called.get(params?.requestId)?.();
  if (id === undefined) return new Response(null, { status: 202 });
  if (method === "tools/call") {
    const closed = watched.opened();
    called.set(id, closed);
    await new Promise<void>((resolve) => {
      request.signal.addEventListener("abort", () => {
        closed();
        resolve();
      });
    });
    return new Response();
  }
  const serverInfo = { name: "overseen", version: "1" };
  const result =
    method === "initialize"
      ? { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo }
      : { tools: [{ name: WAITING_TOOL, inputSchema: { type: "object" } }] };
  return Response.json({ jsonrpc: "2.0", id, result });
}

/** Milliseconds since the Unix epoch with fractions, comparable between processes. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

async function perform(job: Job): Promise<object> {
  switch (job.kind) {
    case "listen":
      return { port: server.port };
    case "until-open":
      await watched.untilOpen(job.count);
      watched.forget();
      return {};
    case "press": {
      const begun = now();
      const response = await fetch(job.url, {
        method: "POST",
        headers: { authorization: `Bearer ${job.token}`, "content-type": "application/json" },
        body: "{}",
      });
      const answered = now();
      if (response.status !== 200) throw new Error(`${job.url}: ${response.status} ${await response.text()}`);
      await response.text();
      return { closed: (await watched.lastClosed(job.count)) - begun, answered: answered - begun };
    }
    case "last-closed":
      return { at: await watched.lastClosed(job.count) };
  }
}

await answerLines((message) => perform(overseenJob.parse(message)));
