import { afterAll, beforeAll, expect, test } from "bun:test";
import { parse } from "csv-parse/sync";
import { parseCheckpoints } from "../../../src/ledger/proof/checkpoint.ts";
import { finishedTask } from "../../access/routes.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { codes, trustIn, Unpacked, verify } from "../verify/bundle/support.ts";

/** A bundle as an auditor gets it: over REST, from a gateway that people have worked with. */
let gateway: TestGateway;
let overseer: string;

beforeAll(async () => {
  gateway = await startGateway();
  overseer = await gateway.token({
    name: "ada's laptop",
    scopes: ["approvals:write", "ledger:read", "settings:write"],
    person: "Ada Lovelace",
    role: "claims supervisor",
    expires_in: "90d",
  });
  await gateway.agent("scout", { tools: [] });
  const task = await finishedTask(gateway, "scout");
  await gateway.call("POST", "/v1/agents/scout/stop", { token: overseer });
  await gateway.call("POST", "/v1/agents/scout/resume", { token: overseer });
  const entries = await gateway.call("GET", "/v1/ledger?action=task.dispatch&limit=1");
  expect(entries.body.data[0].task).toBe(task);
  const erased = await gateway.call("DELETE", `/v1/ledger/${entries.body.data[0].seq}/payload`, {
    token: overseer,
  });
  expect(erased.status).toBe(204);
});
afterAll(() => gateway.stop());

async function download(query = ""): Promise<Blob> {
  const response = await fetch(`${gateway.url}/v1/ledger?format=article14${query}`, {
    headers: { authorization: `Bearer ${overseer}` },
  });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/zip"]);
  return response.blob();
}

test("it verifies with the key and the checkpoint that the gateway provides, and shows who did what", async () => {
  const archive = await download();
  const { vkey } = (await gateway.call("GET", "/v1/ledger/key")).body;
  const bundle = await Unpacked.of(archive);
  const size = JSON.parse(bundle.text("manifest.json")).tree.size;
  const kept = parseCheckpoints(bundle.text("checkpoint.txt"));
  expect(await verify(archive, { ...trustIn(vkey), checkpoints: kept })).toMatchObject({
    verdict: "holds",
    findings: [],
  });
  const entries = bundle
    .text("entries.ndjson")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  expect(entries).toHaveLength(size);
  // The export itself is recorded in the entry after those in the bundle.
  const exported = (await gateway.call("GET", `/v1/ledger/${size + 1}`)).body;
  expect(exported).toMatchObject({ action: "ledger.export", detail: { format: "article14", size } });
  expect(JSON.parse(bundle.text("manifest.json")).created_by).toMatchObject({
    person: "Ada Lovelace",
    role: "claims supervisor",
  });

  const rows = parse(bundle.text("oversight.csv"), { columns: true });
  expect(rows).toMatchObject([
    { person: "Ada Lovelace", role: "claims supervisor", decision: "stop", agent: "scout" },
    { person: "Ada Lovelace", role: "claims supervisor", decision: "resume", agent: "scout" },
  ]);
  const erasures = bundle.text("erasures.ndjson").trim().split("\n");
  expect(erasures).toHaveLength(1);
  expect(JSON.parse(erasures[0] ?? "").payloads.length).toBeGreaterThan(1);

  const report = bundle.text("report.html");
  for (const said of [
    "Ada Lovelace",
    "claims supervisor",
    "ada&#39;s laptop",
    "agent.create",
    "owner: tests",
  ]) {
    expect(report).toContain(said);
  }
  for (const text of Object.values(bundle.files)) {
    expect(Buffer.from(text).includes(overseer)).toBe(false);
    expect(Buffer.from(text).includes(gateway.admin)).toBe(false);
  }
});

test("its filters are those of the list, and excluded entries can be requested by their leaves", async () => {
  const archive = await download("&action=oversight.stop");
  const bundle = await Unpacked.of(archive);
  expect(JSON.parse(bundle.text("manifest.json"))).toMatchObject({
    filters: { action: "oversight.stop" },
    counts: { included: 1 },
  });
  const [seq, leaf] = bundle.text("leaves.txt").split("\n")[0]?.split(" ") ?? [];
  const demanded = await gateway.call("GET", `/v1/ledger/${seq}`);
  expect(demanded.body.leaf).toBe(leaf);
  expect(await verify(archive)).toMatchObject({ verdict: "holds", findings: [] });
});

test("a checkpoint that the gateway signed before agrees with it", async () => {
  const before = (await gateway.call("GET", "/v1/ledger/checkpoint")).body;
  const archive = await download();
  const verification = await verify(archive, { checkpoints: parseCheckpoints(before) });
  expect([verification.verdict, codes(verification)]).toEqual(["holds", []]);
});
