/** Clients without a token open connections until the process has no descriptor left for anything else. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { BINARY } from "../support/process.ts";
import { until } from "../tasks/support.ts";
import { Crowd, type LimitedServer, serveWithOpenFiles } from "./open-files-support.ts";

setDefaultTimeout(120_000);

const OPEN_FILES = 1_024;
const CLIENTS = 1_084;
const HALF_A_HEAD = "GET /v1/agents HTTP/1.1\r\nHost: gatehouse\r\nX-Never: ";

let server: LimitedServer;
let crowd: Crowd;

beforeEach(() => {
  crowd = new Crowd();
});
afterEach(async () => {
  crowd.leave();
  await server.stop();
});

type Client = "regular" | "newcomer";

/** Repeats the call until it succeeds. Until then the only permitted answers say when to try again. */
async function served(client: Client, method: string, path: string, body: object): Promise<Response> {
  for (;;) {
    const response = await server.call(method, path, body, client);
    if (response.ok) return response;
    expect([429, 503]).toContain(response.status);
    expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
    await Bun.sleep(100);
  }
}

async function taskWorks(client: Client, prompt: string): Promise<void> {
  const task = await served(client, "POST", "/v1/tasks", { agent: "helper", prompt });
  const { id } = (await task.json()) as { id: string };
  await until(async () => {
    const response = await server.call("GET", `/v1/tasks/${id}`, undefined, client);
    const { status, error } = (await response.json()) as { status: string; error: unknown };
    expect({ error, status }).toMatchObject({
      error: null,
      status: expect.stringMatching(/^(queued|running|succeeded)$/),
    });
    return status === "succeeded";
  });
}

async function everythingWorks(client: Client, name: string): Promise<void> {
  await taskWorks(client, name);
  const document = { title: name, text: `the ${name} is blue`, scope: "notes" };
  await served(client, "POST", "/v1/vault/documents", document);
  const search = await served(client, "POST", "/v1/vault/search", { query: name });
  expect(await search.json()).toMatchObject({ results: [{ title: name }] });
}

/** `areBusy`: the connections have work in progress, so the server keeps as many as it has room for. */
async function survives(bytes: string, areBusy = true): Promise<void> {
  await server.call("GET", "/v1/agents", undefined, "regular");
  await crowd.join(server.port, CLIENTS, bytes);
  await everythingWorks("regular", "flower");
  await everythingWorks("newcomer", "mountain");
  // The server did not wait for each of them to time out.
  if (areBusy) expect(crowd.open).toBeGreaterThan(CLIENTS / 4);
  crowd.leave();
  await everythingWorks("newcomer", "river");
  expect((await server.call("GET", "/readyz")).status).toBe(200);
  expect(await server.process.end("SIGTERM")).toBe(0);
}

const REFUSED = "POST /v1/tasks HTTP/1.1\r\nHost: gatehouse\r\nContent-Length: 9999999\r\n\r\n{";
const PAGE = "GET /docs HTTP/1.1\r\nHost: gatehouse\r\n\r\n";

test.each([
  ["half a head", HALF_A_HEAD],
  ["a refused call whose body is still to come", REFUSED],
  ["a call, and then half a head", `GET /livez HTTP/1.1\r\nHost: gatehouse\r\n\r\n${HALF_A_HEAD}`],
  ["pages that nobody reads", PAGE.repeat(20)],
])("connections with %s do not end the process: old and new clients are still served", async (_, bytes) => {
  server = await serveWithOpenFiles(OPEN_FILES);
  // Pages beyond the strangers' limit are refused in a few bytes. Those connections are then idle, and make room.
  await survives(bytes, bytes !== PAGE.repeat(20));
});

test("connections with half a head do not end the built program: old and new clients are still served", async () => {
  server = await serveWithOpenFiles(OPEN_FILES, BINARY);
  await survives(HALF_A_HEAD);
});
