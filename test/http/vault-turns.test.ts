/**
 * One tenant's documents never hold up other tenants over HTTP: workspaces take turns, get shares and see published
 * limits.
 */
import { afterEach, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../tasks/support.ts";
import { bytesRequest, DOCX, docx, endlessPdf, PDF } from "../vault/reading/support.ts";

let gateway: TestGateway;
afterEach(() => gateway.stop());

const LONG = "vault: { read_seconds: 600 }\n";

function file(bytes: Uint8Array, type: string): object {
  const { content } = bytesRequest(bytes, type);
  const data = content.kind === "base64" ? content.data : "";
  return { title: "A file", scope: "support", content_base64: data, content_type: type };
}

const ENDLESS = file(endlessPdf(), PDF);
const DOCUMENT = file(docx("<w:p><w:r><w:t>Hello</w:t></w:r></w:p>"), DOCX);

const post = (body: object, token?: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${gateway.url}/v1/vault/documents`, {
    method: "POST",
    headers: { authorization: `Bearer ${token ?? gateway.admin}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });

/**
 * Sends documents without waiting for them.
 * @returns a function that returns how many have been answered
 */
function sendAll(count: number, body: object): () => number {
  let answered = 0;
  for (let n = 0; n < count; n++) {
    void post(body).then(
      () => answered++,
      () => answered++,
    );
  }
  return () => answered;
}

test("a tenant whose documents never end does not affect another one's documents, notes and searches", async () => {
  gateway = await startGateway({ yaml: LONG });
  const other = await gateway.workspace("other");
  const answered = sendAll(5, ENDLESS);
  for (let n = 0; n < 3; n++) {
    expect((await post(DOCUMENT, other)).status).toBe(201);
    expect((await post({ title: "A note", scope: "support", text: "A sloop." }, other)).status).toBe(201);
    const found = await gateway.call("POST", "/v1/vault/search", { token: other, body: { query: "sloop" } });
    expect(found.status).toBe(200);
  }
  // A tenant's own short texts do not wait for its files either.
  expect((await post({ title: "A note", scope: "support", text: "A yawl." })).status).toBe(201);
  expect(answered()).toBe(0);
});

test("a document that takes too long is refused as too complex, and the next one of its workspace is read", async () => {
  gateway = await startGateway({ yaml: "vault: { read_seconds: 5, readers: 1 }\n" });
  const [refused, read] = await Promise.all([post(ENDLESS), post(DOCUMENT)]);
  expect(refused.status).toBe(422);
  expect(await refused.json()).toMatchObject({
    code: "validation_failed",
    detail: "/content_base64: is too complex to be read: it took longer than 5 seconds",
    errors: [{ path: "/content_base64" }],
  });
  expect(read.status).toBe(201);
});

test("a workspace with the most waiting documents is refused, but not another one", async () => {
  gateway = await startGateway({ yaml: `${LONG}limits: { requests_per_minute: 10000 }\n` });
  const other = await gateway.workspace("other");
  // One is being read, and 64 wait.
  sendAll(65, ENDLESS);
  // Documents that are sent together may overtake each other, so more are sent until one is refused.
  let refused: Response | null = null;
  while (refused === null) {
    const next = post(ENDLESS).catch(() => null);
    refused = await Promise.race([next, Bun.sleep(200).then(() => null)]);
  }
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.json()).toMatchObject({ code: "queue_full" });
  expect((await post(DOCUMENT, other)).status).toBe(201);
});

test("a client that leaves while its document waits has written nothing and was not refused", async () => {
  gateway = await startGateway({ yaml: `${LONG}limits: { requests_per_minute: 10000 }\n` });
  const answered = sendAll(1, ENDLESS);
  // By the time this is answered, the document is the first of its workspace.
  await gateway.call("GET", "/v1/vault/documents");
  const caller = new AbortController();
  const waitAndLeave = async (n: number): Promise<string> => {
    for (;;) {
      const answer = await post({ ...DOCUMENT, title: `Left ${n}` }, undefined, caller.signal).catch(
        ({ name }: Error) => name,
      );
      // One that tests for room may have taken its place for a moment.
      if (typeof answer === "string") return answer;
      expect(answer.status).toBe(429);
    }
  };
  const left = Array.from({ length: 64 }, (_, n) => waitAndLeave(n));
  // Once there is no room for another document, all of them are waiting.
  const tryOne = () => post(ENDLESS, undefined, AbortSignal.timeout(200)).catch(() => null);
  while ((await tryOne())?.status !== 429);
  caller.abort();
  expect(new Set(await Promise.all(left))).toEqual(new Set(["AbortError"]));
  const written = async () => {
    const { body } = await gateway.call("GET", "/v1/ledger?action=vault.write&limit=200");
    return body.data as { outcome: string; code?: string }[];
  };
  const cancelled = async () => (await written()).filter(({ outcome }) => outcome === "cancelled");
  await until(async () => (await cancelled()).length >= 64);
  expect(new Set((await cancelled()).map(({ code }) => code))).toEqual(new Set(["client_closed"]));
  const { body } = await gateway.call("GET", "/v1/vault/documents");
  expect(body.data).toEqual([]);
  expect(answered()).toBe(0);
});
