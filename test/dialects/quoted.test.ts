/** A document that a client's agent shows to a model, and that is then deleted with what quotes it. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { until } from "../tasks/support.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage();
});
afterAll(() => stage.stop());

/** The payloads that contain a word, as `<action> <kind>`. */
function holding(word: string): string[] {
  using database = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
  const rows = database
    .query<{ held: string }, [string]>(
      `SELECT l.bytes ->> 'action' || ' ' || p.kind AS held FROM payloads AS p
       JOIN ledger AS l ON l.workspace_id = p.workspace_id AND l.seq = p.seq
       WHERE instr(p.body, ?1) > 0 ORDER BY p.seq`,
    )
    .all(word);
  return rows.map(({ held }) => held);
}

test("leaves neither the prompt nor the answer of another attempt, while other calls stay", async () => {
  const { gateway, upstream, clerk } = stage;
  const text = "The spare key hangs in the boathouse.";
  const { id } = (
    await gateway.call("POST", "/v1/vault/documents", { body: { title: "Keys", text, scope: "house" } })
  ).body;
  upstream.script("first", { status: 500 });
  upstream.script("second", { chunks: ["In the boathouse."] });
  const ask = (content: string) =>
    gateway.call("POST", "/v1/chat/completions", {
      token: clerk,
      body: { model: "tier:1", messages: [{ role: "user", content }] },
    });
  expect((await ask(`Where is the key? ${JSON.stringify({ document_id: id, text })}`)).status).toBe(200);
  expect((await ask("Do you know a boathouse?")).status).toBe(200);
  expect(holding("boathouse").length).toBeGreaterThan(3);
  expect((await gateway.call("DELETE", `/v1/vault/documents/${id}?payloads=true`)).status).toBe(204);
  await until(() => holding(id).length === 0);
  expect(holding("boathouse")).toEqual(["model.call input", "model.call output"]);
});
