/** Long answers: written as they are read, within the memory limits of the workspace and the node. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { Problem } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import type { Reply } from "../../src/http/answer/answer.ts";
import type { TextParts } from "../../src/http/answer/json-parts.ts";
import { LongAnswers } from "../../src/http/answer/long-answers.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { mostPerTurn } from "../support/loop-turns.ts";

const MIB = 1024 * 1024;
const limits = { perWorkspace: 8 * MIB, whole: 16 * MIB };

/** Parts of 64 Ki characters, and how many have been made. */
function parts(length: number): TextParts & { readonly made: number } {
  const seen = { made: 0 };
  return {
    length,
    get made() {
      return seen.made;
    },
    *parts() {
      for (let left = length; left > 0; left -= 65_536) {
        seen.made += 1;
        yield "x".repeat(65_536);
      }
    },
  };
}

function bench(options = limits) {
  const answers = new LongAnswers({ clock: new FakeClock(), log: silentLog, ...options });
  const reply = (made: Partial<Reply>, workspaceId = 1, method = "GET") =>
    answers.reply(
      { workspaceId, requestId: "req_1", request: new Request("http://127.0.0.1/", { method }) },
      { status: 200, ...made },
    );
  /** The open answer. */
  const open = (length: number, workspaceId = 1, method = "GET") => {
    const made = reply({ json: parts(length) }, workspaceId, method);
    if (!("stream" in made)) throw new Error("it is long");
    return made;
  };
  return { answers, reply, open };
}

describe("the answers of a workspace that are still to be read", () => {
  test("have a limit on memory; past it the next read is refused, and finished ones make room", () => {
    const { answers, reply, open } = bench();
    const held = [open(4 * MIB), open(4 * MIB)];
    expect(() => open(MIB)).toThrow(
      new Problem(
        "rate_limited",
        "The workspace's clients have too many long answers left to read. Retry when they have read them.",
      ),
    );
    // Short answers are never refused.
    expect(reply({ json: parts(65_536) })).toHaveProperty("json");
    open(MIB, 2);
    for (const each of held) each.abandon();
    expect(answers.held).toBe(MIB);
    open(8 * MIB);
  });

  test("make room even for one that is larger than the whole limit", () => {
    const { answers, open } = bench();
    open(100 * MIB).abandon();
    expect(answers.held).toBe(0);
  });

  test.each([
    ["body", "x".repeat(70_000)],
    ["body", { data: [{ text: "y".repeat(70_000) }] }],
    ["text", "z".repeat(70_000)],
  ])("count if they are long in %s", async (field, value) => {
    const { answers, reply } = bench();
    const made = reply({ [field]: value, status: 201, headers: { location: "/x" } });
    if (!("stream" in made)) throw new Error("it is long");
    expect(answers.held).toBeGreaterThanOrEqual(70_000);
    const response = made.stream({ "gatehouse-request-id": "req_1" }, () => {});
    expect([response.status, response.headers.get("location")]).toEqual([201, "/x"]);
    expect(response.headers.get("content-type")).toStartWith(
      field === "text" ? "text/plain" : "application/json",
    );
    expect(await response.text()).toBe(field === "text" ? `${value}` : JSON.stringify(value));
    expect(answers.held).toBe(0);
  });
});

test("a finished call is answered, and the workspace's oldest answer is cut off instead", async () => {
  const { open } = bench();
  const [first, second] = [open(4 * MIB), open(4 * MIB)].map((each) => each.stream({}, () => {}));
  const third = open(4 * MIB, 1, "POST").stream({}, () => {});
  await expect(first?.text()).rejects.toThrow("newer answers needed the memory");
  expect(await second?.text()).toHaveLength(4 * MIB);
  expect(await third.text()).toHaveLength(4 * MIB);
});

test("if the node's memory is used up, a workspace below its share takes it from the one with the most", async () => {
  const { open } = bench();
  const most = open(8 * MIB, 1).stream({}, () => {});
  open(8 * MIB, 2);
  const third = open(4 * MIB, 3).stream({}, () => {});
  await expect(most.text()).rejects.toThrow("newer answers needed the memory");
  expect(() => open(8 * MIB, 4)).toThrow("The server has too many long answers in progress.");
  expect(await third.text()).toHaveLength(4 * MIB);
});

test("a long answer is produced as it is read, and is complete", async () => {
  const { reply } = bench();
  const json = parts(64 * MIB);
  const made = reply({ json, status: 201 });
  if (!("stream" in made)) throw new Error("it is long");
  expect(json.made).toBe(0);
  const response = made.stream({ "gatehouse-request-id": "req_1" }, () => {});
  const reader = response.body?.getReader();
  await reader?.read();
  expect(json.made).toBeLessThan(10);
  await reader?.cancel();
});

test("the chunks of many long answers share the turns of the event loop", async () => {
  const { reply } = bench({ perWorkspace: 256 * MIB, whole: 256 * MIB });
  const all = Array.from({ length: 60 }, () => parts(2 * MIB));
  const read = all.map(async (json) => {
    const made = reply({ json });
    if (!("stream" in made)) throw new Error("it is long");
    return (await made.stream({}, () => {}).text()).length;
  });
  await new Promise((resolve) => setImmediate(resolve));
  const made = () => all.reduce((sum, json) => sum + json.made, 0);
  // Eight chunks are as long as a turn.
  expect(await mostPerTurn(Promise.all(read), made)).toBeLessThanOrEqual(24);
  expect(await Promise.all(read)).toEqual(Array(60).fill(2 * MIB));
});

describe("a stream of several answers that nobody reads", () => {
  const answered = { workspaceId: 1, requestId: "req_1", request: new Request("http://127.0.0.1/") };
  /** Sends the chunks without waiting for a reader, like the SDK's transport. */
  function source(...lengths: number[]) {
    const seen = { cancelled: false };
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const length of lengths) controller.enqueue(new Uint8Array(length));
      },
      cancel() {
        seen.cancelled = true;
      },
    });
    return { stream, seen };
  }
  const settled = async () => {
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
  };

  test("counts as a whole, and frees its memory as it is read", async () => {
    const { answers } = bench();
    const body = answers.relay(answered, source(2 * MIB, 3 * MIB).stream);
    await settled();
    expect(answers.held).toBe(5 * MIB);
    const reader = body.getReader();
    for (let left = 5 * MIB; left > 0; ) left -= (await reader.read()).value?.length ?? 0;
    void reader.read();
    await settled();
    expect(answers.held).toBe(0);
  });

  test("counts many short ones together", async () => {
    const { answers } = bench();
    answers.relay(answered, source(...Array.from({ length: 1_000 }, () => 1_024)).stream);
    await settled();
    expect(answers.held).toBe(1_000 * 1_024 - 64 * 1_024);
  });

  test("is cut off past its workspace's share, and then holds no memory", async () => {
    const { answers } = bench();
    const { stream, seen } = source(4 * MIB, 4 * MIB, 4 * MIB);
    const body = answers.relay(answered, stream);
    await settled();
    await expect(new Response(body).text()).rejects.toThrow("newer answers needed the memory");
    expect(seen.cancelled).toBe(true);
    expect(answers.held).toBe(0);
  });

  test("holds no memory once its client has left", async () => {
    const { answers } = bench();
    const abort = new AbortController();
    const request = { method: "POST", signal: abort.signal };
    answers.relay({ ...answered, request }, source(4 * MIB).stream).getReader();
    await settled();
    expect(answers.held).toBe(4 * MIB);
    abort.abort();
    await settled();
    expect(answers.held).toBe(0);
  });

  test("fails with its source, after sending what came before", async () => {
    const { answers } = bench();
    const broken = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new Uint8Array(3));
      },
      pull(controller) {
        controller.error(new Error("broken source"));
      },
    });
    const reader = answers.relay(answered, broken).getReader();
    await settled();
    expect((await reader.read()).value).toHaveLength(3);
    await expect(reader.read()).rejects.toThrow("broken source");
  });
});

describe("of a gateway", () => {
  let gateway: TestGateway;
  let document: string;
  const sockets: Socket[] = [];
  beforeAll(async () => {
    gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }\n" });
    await gateway.agent("a");
    // Longer than what connections hold for a client that does not read.
    const text = "t".repeat(12 * MIB);
    document = (await gateway.call("POST", "/v1/vault/documents", { body: { title: "d", scope: "a", text } }))
      .body.id;
  }, 60_000);
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await gateway.stop();
  });

  /** Sends a request on its own connection, and reads only the answer's first bytes: at least `least`. */
  function unread(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body = "",
    least = 1,
  ): Promise<{ status: number; socket: Socket }> {
    const { host, hostname, port } = new URL(gateway.url);
    const socket = connect({ host: hostname, port: Number(port) });
    sockets.push(socket);
    const own = { host, authorization: `Bearer ${gateway.admin}`, "content-length": `${body.length}` };
    const head = Object.entries({ ...own, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`${method} ${path} HTTP/1.1\r\n${head.join("")}\r\n${body}`);
    return new Promise((resolve, reject) => {
      socket.once("error", reject);
      let received = "";
      socket.on("data", function read(data) {
        received += data.toString("latin1");
        if (received.length < least) return;
        socket.off("data", read);
        socket.pause();
        resolve({ status: Number(received.slice(9, 12)), socket });
      });
    });
  }

  test("every list ends at 4 MiB with a cursor, and continues to its end", async () => {
    const prompt = "p".repeat(1_000_000);
    const instructions = "i".repeat(100_000);
    for (let at = 0; at < 6; at++) {
      const schedule = { name: `s${at}`, agent: "a", prompt, cron: "0 0 1 1 *" };
      expect((await gateway.call("POST", "/v1/schedules", { body: schedule })).status).toBe(201);
    }
    for (let at = 0; at < 45; at++) await gateway.agent(`b${at}`, { instructions });
    for (const [path, count] of [
      ["schedules", 6],
      ["agents", 46],
    ] as const) {
      const seen: string[] = [];
      let pages = 0;
      for (let cursor: string | null = ""; cursor !== null; pages++) {
        const query: string = cursor && `&cursor=${cursor}`;
        const { status, body } = await gateway.call("GET", `/v1/${path}?limit=200${query}`);
        expect(status).toBe(200);
        expect(body.data.length).toBeGreaterThan(0);
        expect(JSON.stringify(body).length).toBeLessThan(4.1 * MIB);
        seen.push(...body.data.map(({ name }: { name: string }) => name));
        cursor = body.next_cursor;
      }
      expect([path, pages, seen.length, new Set(seen).size]).toEqual([path, 2, count, count]);
    }
  });

  test("too many unread answers end in 429, only for their workspace; clients that leave make room", async () => {
    const path = `/v1/vault/documents/${document}`;
    const open: Socket[] = [];
    for (;;) {
      const { status, socket } = await unread("GET", path);
      if (status === 429) break;
      expect(status).toBe(200);
      open.push(socket);
    }
    expect(open.length).toBe(5);
    const refused = await gateway.call("GET", path);
    expect([refused.status, refused.body.code, refused.headers.get("retry-after")]).toEqual([
      429,
      "rate_limited",
      "5",
    ]);
    const token = await gateway.workspace("other");
    const agent = { name: "a", owner: "tests", memory_scope: "/", instructions: "i".repeat(100_000) };
    expect((await gateway.call("POST", "/v1/agents", { token, body: agent })).status).toBe(201);
    expect((await gateway.call("GET", "/v1/agents/a", { token })).body.instructions).toHaveLength(100_000);
    for (const socket of open) socket.destroy();
    let status = 429;
    while (status === 429) ({ status } = await gateway.call("GET", path));
    expect(status).toBe(200);
  });

  describe("an answer over MCP that nobody reads", () => {
    const headers: Record<string, string> = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    beforeAll(async () => {
      const clientInfo = { name: "t", version: "1" };
      const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
      const hello = { jsonrpc: "2.0", id: 1, method: "initialize", params };
      const answer = await gateway.call("POST", "/mcp", { headers, body: hello });
      headers["mcp-session-id"] = answer.headers.get("mcp-session-id") ?? "";
    });

    /** More than the head of an answer, which a stream sends before the answer is there. */
    const HEAD_BYTES = 16_384;

    test.each([
      ["at once", {}],
      ["by a stream", { _meta: { progressToken: 1 } }],
    ])("%s is cut off for newer ones, and never looks complete", async (_, params) => {
      const open: Socket[] = [];
      for (let id = 1; id <= 6; id++) {
        const asked = { uri: `vault://${document}`, ...params };
        const message = JSON.stringify({ jsonrpc: "2.0", id, method: "resources/read", params: asked });
        const { status, socket } = await unread("POST", "/mcp", headers, message, HEAD_BYTES);
        expect(status).toBe(200);
        open.push(socket);
      }
      const [first, last] = [open[0], open.at(-1)];
      if (!first || !last) throw new Error("there are six");
      const ends = await Promise.all([first, last].map(restOf));
      expect(ends.map(({ isWhole }) => isWhole)).toEqual([false, true]);
      for (const socket of open) socket.destroy();
    });

    /** Reads to the end of the answer, or of the connection. */
    function restOf(socket: Socket): Promise<{ isWhole: boolean }> {
      return new Promise((resolve) => {
        let end = "";
        socket.on("data", (data) => {
          end = (end + data.toString("latin1")).slice(-16);
          if (end.endsWith("\r\n0\r\n\r\n")) resolve({ isWhole: true });
        });
        socket.on("close", () => resolve({ isWhole: false }));
        socket.resume();
      });
    }
  });

  test("HEAD has no body, and holds no memory", async () => {
    const { body } = await gateway.call("GET", "/v1/schedules?limit=1");
    for (let times = 0; times < 100; times++) {
      const { status, body: empty } = await gateway.call("HEAD", `/v1/schedules/${body.data[0].id}`);
      expect([status, empty]).toEqual([200, null]);
    }
  });
});
