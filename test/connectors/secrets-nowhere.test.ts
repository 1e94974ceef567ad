/** An upstream repeats a connector's secrets wherever it can. They must not appear anywhere. */
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { connect, type Message } from "../mcp/support.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { startGateway } from "../support/gateway.ts";
import { startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { ledger, run, yamlOf } from "../tasks/support.ts";

const FAKE_STDIO = join(import.meta.dir, "..", "support", "fake-mcp", "stdio.ts");
const SECRETS = ["hunter22-in-a-header", "hunter22-in-env", "hunter22-of-the-api"] as const;

/** Every file below a directory that contains one of the texts, in plain, base64 or hex. */
function filesHolding(directory: string, texts: readonly string[]): string[] {
  const forms = texts.flatMap((each) => [
    each,
    Buffer.from(each).toString("base64").replace(/=+$/, "").slice(0, -2),
    Buffer.from(each).toString("hex"),
  ]);
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile())
    .filter((path) => {
      const bytes = readFileSync(path);
      return forms.some((form) => bytes.includes(form));
    });
}

test("not in an answer, the ledger, a payload, a log line or a file", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  const model = startFakeModel();
  const lines: string[] = [];
  const log = createLog("debug", systemClock, (line) => void lines.push(line));
  const gateway = await startGateway({
    dataDir,
    log,
    yaml: yamlOf(model.url, { tiers: { 1: ["a"] } }),
  });
  const seen: string[] = [];
  const see = (answer: unknown) => void seen.push(JSON.stringify(answer));

  const [header, variable, key] = SECRETS;
  const tool = (name: string, description: string) => ({
    name,
    description,
    inputSchema: { type: "object" },
  });
  const upstream = startScriptedMcp([
    tool("tells", `Uses ${header}.`),
    tool(`leaks_${header}`, ""),
    tool("raw", ""),
  ]);
  upstream.answer(({ input }) => {
    if (input.how === "error")
      return { isError: true, content: [{ type: "text", text: `Bad token ${header}` }] };
    if (input.how === "structured") return { content: [], structuredContent: { deep: [{ token: header }] } };
    if (input.how === "garbage") return { content: header };
    return text(`sent with Bearer ${header}, ${Buffer.from(header).toString("base64")}`);
  });
  const api = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => new Response(`you sent ${request.headers.get("x-key")}`, { status: 500 }),
  });

  const create = async (body: object) => see(await gateway.call("POST", "/v1/connectors", { body }));
  const headers = { Authorization: `Bearer ${header}` };
  await create({ name: "up", kind: "mcp", transport: { type: "http", url: upstream.url, headers } });
  const stdio = (behaviour: string) => ({
    type: "stdio",
    command: process.execPath,
    args: [FAKE_STDIO, behaviour],
    env: { SECRET: variable },
  });
  await create({ name: "child", kind: "mcp", transport: stdio("plain") });
  await create({ name: "loud", kind: "mcp", transport: stdio("ends") });
  await create({
    name: "api",
    kind: "openapi",
    base_url: `http://127.0.0.1:${api.port}`,
    auth: { type: "header", name: "x-key", value: key },
    spec: {
      openapi: "3.1.0",
      info: { title: "x", version: "1" },
      paths: { "/a": { get: { operationId: "getA", responses: { "200": { description: "ok" } } } } },
    },
  });
  // Refused requests do not repeat a secret either.
  await create({ name: "up", kind: "mcp", transport: { type: "http", url: upstream.url, headers } });
  await create({
    name: "more",
    kind: "mcp",
    transport: { type: "http", url: 7, headers: { a: `${header}\n` } },
  });
  await create({
    name: "more",
    kind: "openapi",
    spec: `{"token": "${key}"`,
    auth: { type: "bearer", token: key },
  });

  const client = await connect(gateway);
  see(await client.ask("tools/list"));
  const calls: readonly [string, object][] = [
    ["up__tells", {}],
    ["up__tells", { how: "error" }],
    ["up__tells", { how: "structured" }],
    ["up__tells", { how: "garbage" }],
    ["child__env", {}],
    ["child__fail", {}],
    ["loud__none", {}],
    ["api__getA", {}],
  ];
  for (const [name, input] of calls) {
    const { messages } = await client.post({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name, arguments: input, _meta: { progressToken: 1 } },
    });
    expect(messages.length).toBeGreaterThan(0);
    see(messages as Message[]);
  }
  await gateway.agent("worker");
  for (const name of ["up__tells", "child__env", "child__fail", "api__getA"]) {
    model.script("a", (_request, index) =>
      index === 0 ? { toolCalls: [{ name, arguments: {} }] } : { chunks: ["Done."] },
    );
    see(await run(gateway, { agent: "worker", tools: [name.replace("__", ".")] }));
  }
  see(model.requests);
  for (const name of ["up", "child", "loud", "api"])
    see(await gateway.call("POST", `/v1/connectors/${name}/refresh`));
  see(await gateway.call("GET", "/v1/connectors"));
  see(await ledger(gateway));
  see((await gateway.call("GET", "/metrics")).body);

  await gateway.stop();
  await upstream.close();
  await api.stop(true);
  await model.close();

  const said = seen.join("\n");
  // Prove that the calls were made and their answers masked, rather than empty.
  for (const words of ["sent with ", "Bad token ", "you sent ", "cannot log in with ", "refused with "]) {
    expect([words, said.includes(`${words}[redacted]`)]).toEqual([words, true]);
  }
  expect(lines.length).toBeGreaterThan(0);
  expect(filesHolding(dataDir, SECRETS)).toEqual([]);
  for (const secret of SECRETS) {
    for (const form of [secret, Buffer.from(secret).toString("base64").replace(/=+$/, "").slice(0, -2)]) {
      expect(said.split(form).length - 1).toBe(0);
      expect(lines.filter((line) => line.includes(form))).toEqual([]);
    }
  }
  rmSync(dataDir, { recursive: true, force: true });
}, 30_000);
