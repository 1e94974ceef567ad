import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { MODES } from "../../support/vault.ts";
import { type Workspace, workspaceOf } from "./support.ts";

let gateway: TestGateway;
let ours: Workspace;
let theirs: Workspace;
const SCOPE = "support/a";
let shared: string;

beforeAll(async () => {
  gateway = await startGateway();
  ours = workspaceOf(gateway, gateway.admin);
  theirs = workspaceOf(gateway, await gateway.workspace("theirs"));
  shared = await ours.write({ title: "Ours", text: "The quokka is ours.", scope: SCOPE });
  await theirs.write({ id: shared, title: "Theirs", text: "The zeppelin is theirs.", scope: SCOPE });
});
afterAll(() => gateway.stop());

test("the same id in two workspaces is two documents", async () => {
  for (const [workspace, title] of [
    [ours, "Ours"],
    [theirs, "Theirs"],
  ] as const) {
    expect((await workspace.call("GET", `/v1/vault/documents/${shared}`)).body.title).toBe(title);
    const { data } = (await workspace.call("GET", "/v1/vault/documents")).body;
    expect(data.map((each: { title: string }) => each.title)).toEqual([title]);
  }
});

test.each(MODES)(
  "a %s search sees only its own workspace, in the same scope and with the same id",
  async (mode) => {
    for (const query of ["quokka", "zeppelin", "quoka", "zepelin"]) {
      const ask = { query, mode, scopes: [SCOPE], explain: true };
      const [mine, other] = await Promise.all([ours.search(ask), theirs.search(ask)]);
      expect(mine.results.filter(({ title }) => title !== "Ours")).toEqual([]);
      expect(other.results.filter(({ title }) => title !== "Theirs")).toEqual([]);
      expect(JSON.stringify(mine)).not.toContain("zeppelin");
      expect(JSON.stringify(other)).not.toContain("quokka");
    }
  },
);

test("a filter's value matches only in its own workspace", async () => {
  const filter = { owner: "ann" };
  await ours.write({ text: "Ours with ann.", scope: SCOPE, metadata: filter });
  expect((await theirs.search({ query: "ann", filter })).results).toEqual([]);
  expect((await ours.search({ query: "ann", filter })).results).toHaveLength(1);
});

test("a workspace can neither replace nor delete another's documents", async () => {
  const own = await ours.write({ text: "Only ours.", scope: SCOPE });
  for (const method of ["GET", "DELETE"]) {
    const answer = await theirs.call(method, `/v1/vault/documents/${own}`);
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
  }
  const written = await theirs.call("POST", "/v1/vault/documents", {
    id: own,
    title: "Theirs",
    text: "Now theirs.",
    scope: SCOPE,
  });
  expect(written.status).toBe(201);
  expect((await ours.call("GET", `/v1/vault/documents/${own}`)).body.text).toBe("Only ours.");
  expect((await theirs.call("DELETE", `/v1/vault/documents/${own}`)).status).toBe(204);
  expect((await ours.call("GET", `/v1/vault/documents/${own}`)).body.text).toBe("Only ours.");
});

test("a cursor from another workspace's list reveals nothing of it", async () => {
  for (const text of ["one", "two", "three"]) await theirs.write({ text, scope: "lists" });
  const first = (await theirs.call("GET", "/v1/vault/documents?limit=1")).body;
  const { data } = (await ours.call("GET", `/v1/vault/documents?limit=50&cursor=${first.next_cursor}`)).body;
  expect(data.every(({ scope }: { scope: string }) => scope === SCOPE)).toBe(true);
});
