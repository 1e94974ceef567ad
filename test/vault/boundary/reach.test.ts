import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MODES } from "../../support/vault.ts";
import {
  EMBEDDINGS,
  type House,
  isInsideOf,
  scopePath,
  scopePaths,
  startHouse,
  type Workspace,
  workspaceOf,
} from "./support.ts";

/** Every run has its own workspace with the same paths as all others, because workspaces must be separate too. */
let runs = 0;
async function freshWorkspace({ gateway }: House): Promise<Workspace> {
  runs += 1;
  return workspaceOf(gateway, await gateway.workspace(`run-${runs}`));
}

interface Placed {
  readonly id: string;
  readonly scope: string;
  readonly marker: string;
}

const MARKERS = ["quokka", "zeppelin", "marmalade", "obsidian", "velocity", "harpoon", "trellis", "bungalow"];
const tree = fc.array(scopePath, { minLength: 1, maxLength: MARKERS.length });
const textOf = (marker: string) => `Somebody wrote ${marker} here.`;

async function place(workspace: Workspace, scopes: readonly string[]): Promise<Placed[]> {
  const placed: Placed[] = [];
  for (const [index, scope] of scopes.entries()) {
    const marker = MARKERS[index] as string;
    placed.push({ id: await workspace.write({ text: textOf(marker), scope }), scope, marker });
  }
  return placed;
}

/** A search must find exactly what the oracle says, whichever document's word is searched for. */
async function expectReach(
  workspace: Workspace,
  documents: readonly Placed[],
  boundary: readonly (readonly string[])[],
  ask: object,
  token?: string,
): Promise<void> {
  const inside = (scope: string) => boundary.every((paths) => isInsideOf(paths, scope));
  const insideIds = documents.filter(({ scope }) => inside(scope)).map(({ id }) => id);
  for (const mode of MODES) {
    for (const { id, scope, marker } of documents) {
      const { results } = await workspace.search({ ...ask, query: marker, mode, top_k: 100 }, token);
      const found = results.map(({ document_id }) => document_id);
      expect(found.filter((each) => !insideIds.includes(each))).toEqual([]);
      expect(found.includes(id)).toBe(inside(scope));
      // A vector search ranks every passage within the boundary, so nothing inside may be missing either.
      if (mode === "vector") expect(found.toSorted()).toEqual(insideIds.toSorted());
    }
  }
}

describe.each(EMBEDDINGS)("with the vectors of %s", (embeddings) => {
  let house: House;
  beforeAll(async () => {
    house = await startHouse(embeddings);
  });
  afterAll(() => house.stop());

  test("a document is found if and only if it lies inside, whoever searches and in whatever mode", async () => {
    const run = async (scopes: string[], memory: string[], wanted: string[]) => {
      const workspace = await freshWorkspace(house);
      const documents = await place(workspace, scopes);
      const token = await workspace.agent("agent", memory);
      await expectReach(workspace, documents, [memory], {}, token);
      await expectReach(workspace, documents, [memory], { agent: "agent" });
      await expectReach(workspace, documents, [memory, wanted], { scopes: wanted }, token);
      await expectReach(workspace, documents, [memory, wanted], { agent: "agent", scopes: wanted });
      await expectReach(workspace, documents, [wanted], { scopes: wanted });
      await expectReach(workspace, documents, [], {});
    };
    await fc.assert(fc.asyncProperty(tree, scopePaths, scopePaths, run), {
      numRuns: 20,
      examples: [
        [["support", "supportx", "support-a", "support/a", "support.a", "/", "suppor"], ["support"], ["/"]],
        [["support", "support/a", "support/a/b", "support/a0", "support/b"], ["support/a"], ["support"]],
        [["/", "support", "a"], ["/"], ["support", "support/a"]],
      ],
    });
  }, 120_000);

  test("lists and reads show what is inside, and nothing else exists for them", async () => {
    const run = async (scopes: string[], memory: string[], wanted: string) => {
      const workspace = await freshWorkspace(house);
      const documents = await place(workspace, scopes);
      const token = await workspace.agent("agent", memory);
      const list = async (query: string, as?: string) => {
        const { status, body } = await workspace.call("GET", `/v1/vault/documents${query}`, undefined, as);
        expect([status, body.next_cursor]).toEqual([200, null]);
        return body.data.map(({ id }: { id: string }) => id);
      };
      const idsOf = (inside: (scope: string) => boolean) =>
        documents
          .filter(({ scope }) => inside(scope))
          .map(({ id }) => id)
          .toReversed();
      const query = `?scope=${encodeURIComponent(wanted)}`;
      expect(await list("", token)).toEqual(idsOf((scope) => isInsideOf(memory, scope)));
      expect(await list(query, token)).toEqual(
        idsOf((scope) => isInsideOf(memory, scope) && isInsideOf([wanted], scope)),
      );
      expect(await list(query)).toEqual(idsOf((scope) => isInsideOf([wanted], scope)));
      for (const { id, scope, marker } of documents) {
        const { status, body } = await workspace.call("GET", `/v1/vault/documents/${id}`, undefined, token);
        if (isInsideOf(memory, scope)) expect([status, body.text]).toEqual([200, textOf(marker)]);
        else expect([status, body.code]).toEqual([404, "not_found"]);
      }
    };
    await fc.assert(fc.asyncProperty(tree, scopePaths, scopePath, run), { numRuns: 30 });
  }, 120_000);

  test("an agent writes, replaces and deletes only inside; a refusal changes nothing", async () => {
    const run = async (scopes: string[], memory: string[], target: string) => {
      const workspace = await freshWorkspace(house);
      const documents = await place(workspace, scopes);
      const token = await workspace.agent("agent", memory);
      const everything = async () => {
        const ids = (await workspace.call("GET", "/v1/vault/documents?limit=200")).body.data;
        const all = ids.map(({ id }: { id: string }) => workspace.call("GET", `/v1/vault/documents/${id}`));
        return (await Promise.all(all)).map(({ body }) => body);
      };
      const write = (body: object) =>
        workspace.call("POST", "/v1/vault/documents", { title: "Mine", text: "A new text.", ...body }, token);
      const isFree = isInsideOf(memory, target);

      let before = await everything();
      const made = await write({ scope: target });
      expect([made.status, made.body.code]).toEqual(isFree ? [201, undefined] : [403, "scope_forbidden"]);
      if (!isFree) expect(await everything()).toEqual(before);

      for (const { id, scope, marker } of documents) {
        before = await everything();
        const isMine = isInsideOf(memory, scope);
        // Moves the document to another path. Both paths must be inside.
        const replaced = await write({ id, scope: target });
        expect(replaced.status).toBe(isMine && isFree ? 200 : 403);
        if (replaced.status === 403) {
          expect(replaced.body.code).toBe("scope_forbidden");
          expect(await everything()).toEqual(before);
          const { results } = await workspace.search({ query: marker, mode: "keyword" });
          expect(results.map(({ document_id, text }) => [document_id, text])).toEqual([[id, textOf(marker)]]);
        }
        const nowMine = replaced.status === 200 || isMine;
        before = await everything();
        const deleted = await workspace.call("DELETE", `/v1/vault/documents/${id}`, undefined, token);
        expect(deleted.status).toBe(nowMine ? 204 : 404);
        if (!nowMine) expect(await everything()).toEqual(before);
        else expect((await workspace.call("GET", `/v1/vault/documents/${id}`)).status).toBe(404);
      }
    };
    await fc.assert(fc.asyncProperty(tree, scopePaths, scopePath, run), { numRuns: 25 });
  }, 120_000);

  test("a document outside is refused with the same message as one that does not exist", async () => {
    const workspace = await freshWorkspace(house);
    const token = await workspace.agent("agent", "support");
    const [outside] = await place(workspace, ["supportx"]);
    const never = outside?.id.replace(/.{6}$/, "000000") as string;
    for (const method of ["GET", "DELETE"]) {
      const answers = [outside?.id as string, never].map(async (id) => {
        const { status, body } = await workspace.call(method, `/v1/vault/documents/${id}`, undefined, token);
        const { request_id, ...rest } = body;
        return JSON.stringify([status, rest]).replaceAll(id, "ID");
      });
      const [first, second] = await Promise.all(answers);
      expect(first).toBe(second as string);
      expect(first).toContain("[404,");
    }
  });

  test("a token that acts as an agent cannot see as another agent, whatever else it may do", async () => {
    const workspace = await freshWorkspace(house);
    await workspace.agent("legal", "legal");
    await workspace.agent("support", "support");
    await workspace.write({ text: textOf("quokka"), scope: "legal" });
    const token = await workspace.call("POST", "/v1/tokens", {
      name: "x",
      agent: "support",
      scopes: ["admin"],
    });
    const ask = (body: object) =>
      workspace.call("POST", "/v1/vault/search", { query: "quokka", ...body }, token.body.secret);
    const other = await ask({ agent: "legal" });
    expect([other.status, other.body.code]).toEqual([403, "agent_forbidden"]);
    for (const body of [{ agent: "support" }, {}, { scopes: ["legal"] }, { scopes: ["/"] }]) {
      const own = await ask(body);
      expect([own.status, own.body.results]).toEqual([200, []]);
    }
    const nobody = await workspace.call("POST", "/v1/vault/search", { query: "quokka", agent: "nobody" });
    expect([nobody.status, nobody.body.code]).toEqual([404, "agent_not_found"]);
  });

  test("scopes are all searched, even if there are more than one query can name", async () => {
    const workspace = await freshWorkspace(house);
    for (let at = 0; at < 70; at++) {
      await workspace.write({ text: `The tapir number t${at}x${at * 7}.`, scope: `many/s${at}` });
      if (at % 10 === 0)
        await workspace.write({ text: `The tapir is outside ${at}.`, scope: `many-x/s${at}` });
    }
    for (const mode of MODES) {
      const { results } = await workspace.search({ query: "tapir", mode, scopes: ["many"], top_k: 100 });
      expect(results.filter(({ scope }) => scope.startsWith("many/"))).toHaveLength(70);
      expect(results).toHaveLength(70);
    }
  });

  test("a token of an archived agent sees nothing, not even what another agent with its name may see", async () => {
    const workspace = await freshWorkspace(house);
    const token = await workspace.agent("agent", "support");
    await place(workspace, ["legal"]);
    await workspace.call("DELETE", "/v1/agents/agent");
    const ask = () => workspace.call("POST", "/v1/vault/search", { query: "quokka" }, token);
    expect((await ask()).status).toBe(401);
    await workspace.agent("agent", "legal");
    expect((await ask()).status).toBe(401);
  });

  test("a narrower memory applies from the next call on", async () => {
    const workspace = await freshWorkspace(house);
    const token = await workspace.agent("agent", ["support", "legal"]);
    const [legal] = await place(workspace, ["legal"]);
    const seen = async () => {
      const { results } = await workspace.search({ query: "quokka" }, token);
      const read = await workspace.call("GET", `/v1/vault/documents/${legal?.id}`, undefined, token);
      return [results.length, read.status];
    };
    expect(await seen()).toEqual([1, 200]);
    await workspace.call("PATCH", "/v1/agents/agent", { memory_scope: "support" });
    expect(await seen()).toEqual([0, 404]);
    await workspace.call("PATCH", "/v1/agents/agent", { memory_scope: "/" });
    expect(await seen()).toEqual([1, 200]);
  });
});
