/** The built program reads documents in separate processes, from an empty folder, and leaves none behind. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { BINARY, run, type ServerProcess, serve, tempDir } from "../support/process.ts";
import { until } from "../tasks/support.ts";
import { bomb, bytesRequest, DOCX, docx, endlessPdf, PDF, pdf } from "../vault/reading/support.ts";

let folder: ReturnType<typeof tempDir>;
let server: ServerProcess;
let token: string;

beforeAll(async () => {
  folder = tempDir();
  const options = { program: BINARY, cwd: folder.path, env: { GATEHOUSE_VAULT_READ_MEGABYTES: "256" } };
  server = await serve([], options);
  const made = await run(["token", "create", "--name", "t", "--scope", "admin", "--json"], options);
  token = JSON.parse(made.stdout).secret;
});

afterAll(async () => {
  await server.end("SIGKILL");
  folder.remove();
});

function post(bytes: Uint8Array, type: string): Promise<Response> {
  const { content } = bytesRequest(bytes, type);
  const data = content.kind === "base64" ? content.data : "";
  return fetch(`${server.url}/v1/vault/documents`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ title: "A file", scope: "support", content_base64: data, content_type: type }),
  });
}

test.each([
  ["DOCX", () => docx("<w:p><w:r><w:t>Hello</w:t></w:r></w:p>"), DOCX],
  ["PDF", () => pdf("BT /F1 12 Tf 72 720 Td (Hello) Tj ET"), PDF],
])("a %s is read", async (_, bytes, type) => {
  const answer = await post(bytes(), type);
  expect([answer.status, JSON.parse(await answer.text()).characters]).toEqual([201, 5]);
});

test("an OpenAPI document is read, and any other document is refused", async () => {
  const create = (name: string, spec: object) =>
    fetch(`${server.url}/v1/connectors`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ name, kind: "openapi", spec, base_url: "http://127.0.0.1:1/" }),
    });
  const document = { openapi: "3.1.0", info: { title: "t", version: "1" } };
  const answer = await create("api", { ...document, paths: { "/a": { get: { operationId: "a" } } } });
  const { tools } = JSON.parse(await answer.text());
  expect([answer.status, tools.map(({ name }: { name: string }) => name)]).toEqual([201, ["api.a"]]);
  expect((await create("none", document)).status).toBe(422);
});

test("a document that would take gigabytes is refused, and the server's memory does not grow", async () => {
  await post(docx("<w:p><w:r><w:t>Hello</w:t></w:r></w:p>"), DOCX);
  const before = memoryOf(server.pid);
  const answer = await post(pdf(bomb(2_048), "/Filter [/Fl /Fl]"), PDF);
  expect(answer.status).toBe(422);
  expect(JSON.parse(await answer.text()).detail).toContain("takes more than 256 MiB of memory");
  // The refused document would have taken 2,048 MiB; the server itself fluctuates by a few tens of MiB.
  expect(memoryOf(server.pid) - before).toBeLessThan(128);
}, 60_000);

test.skipIf(process.platform !== "linux")("a killed server leaves no process behind", async () => {
  const reading = post(endlessPdf(), PDF).catch(() => null);
  // A process that read an OpenAPI document may also still be running.
  const isReader = (pid: number) =>
    ["read-documents", "read-api-documents"].includes(commandOf(pid)[1] ?? "");
  await until(() => childrenOf(server.pid).some((pid) => commandOf(pid)[1] === "read-documents"));
  const children = childrenOf(server.pid);
  expect(children.map(isReader)).toEqual(children.map(() => true));
  await server.end("SIGKILL");
  await reading;
  await until(() => children.every((pid) => !isReader(pid)));
});

/** MiB; 0 if the system does not report it. */
function memoryOf(pid: number): number {
  if (process.platform !== "linux") return 0;
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes ?? 0) / 1024;
}

function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && parentOf(pid) === parent && commandOf(pid).length > 1);
}

function parentOf(pid: number): number {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  } catch {
    return 0;
  }
}

/** Empty if the process has ended. */
function commandOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
}
