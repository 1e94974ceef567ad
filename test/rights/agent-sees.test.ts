/**
 * "A token that acts as an agent sees, with `agents:read` and `ledger:read`, its own agent and its own agent's
 * entries."
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { trustIn, Unpacked, verify } from "../ledger/verify/bundle/support.ts";
import { connect } from "../mcp/support.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** Part of the name of everything that the token must not see. */
const FOREIGN = "zyxomatic";

let gateway: TestGateway;
/** Acts as `own`, with every scope. */
let token: string;
let tokenId: string;
let ownTask: string;
let foreignTask: string;

interface Entry {
  readonly seq: number;
  readonly ts: string;
  readonly action: string;
  readonly agent: string | null;
  readonly actor: string;
}

beforeAll(async () => {
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }\n" });
  // The name used to belong to another agent.
  await gateway.agent("own", { owner: `${FOREIGN} of before`, description: FOREIGN });
  await finishedTask(gateway, "own", FOREIGN);
  await gateway.call("DELETE", "/v1/agents/own");
  // Ensure that earlier entries have an earlier millisecond.
  const before = Date.now();
  while (Date.now() <= before + 1) await Bun.sleep(1);
  await gateway.agent("own");
  await gateway.agent(FOREIGN, { instructions: `the instructions of ${FOREIGN}` });
  const issued = await gateway.call("POST", "/v1/tokens", {
    body: { name: "own's", agent: "own", scopes: ["admin"] },
  });
  ({ secret: token, id: tokenId } = issued.body);
  await gateway.token({ name: `${FOREIGN}'s`, scopes: ["admin"], person: `Ada ${FOREIGN}` });
  for (let round = 0; round < 3; round++) {
    foreignTask = await finishedTask(gateway, FOREIGN);
    ownTask = await finishedTask(gateway, "own");
  }
  foreignTask = await finishedTask(gateway, FOREIGN);
  // Erase texts of both agents.
  for (const entry of (await all("?action=task.dispatch", gateway.admin)).filter(isDispatch)) {
    await gateway.call("DELETE", `/v1/ledger/${entry.seq}/payload`);
  }
  // Enough entries for more than one block of the index.
  for (let call = 0; call < 300; call++) await gateway.call("GET", `/v1/agents/${FOREIGN}`);
});
afterAll(() => gateway.stop());

const isDispatch = ({ action, ...rest }: Entry) =>
  action === "task.dispatch" && "phase" in rest && rest.phase === "intent";
const get = (path: string, by = token) => gateway.call("GET", path, { token: by });

async function all(query: string, by = token): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let cursor = ""; ; ) {
    const { body } = await get(`/v1/ledger${query}&limit=200${cursor}`, by);
    entries.push(...body.data);
    if (body.next_cursor === null) return entries;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

/** The agent's entries as an all-seeing token gets them, from the entry that created the agent. */
async function expected(query = ""): Promise<number[]> {
  const made = (await all("?agent=own&action=agent.create&order=desc", gateway.admin))[0];
  return (await all(`?agent=own${query}`, gateway.admin))
    .filter(({ seq, actor }) => seq >= (made?.seq ?? 0) && actor !== `token:${tokenId}`)
    .map(({ seq }) => seq);
}

/** The entries that the token was given, except those of its own calls. */
const seqsOf = (entries: readonly Entry[]) =>
  entries.filter(({ actor }) => actor !== `token:${tokenId}`).map(({ seq }) => seq);

describe("agents", () => {
  test("the list has only its own, on one page", async () => {
    const { body } = await get("/v1/agents");
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(["own"]);
    expect(body.next_cursor).toBeNull();
    const after = Buffer.from("own").toString("base64url");
    expect((await get(`/v1/agents?cursor=${after}`)).body.data).toEqual([]);
  });

  test("another agent is not found, like one that never existed", async () => {
    const [foreign, none] = [await get(`/v1/agents/${FOREIGN}`), await get("/v1/agents/nobody")];
    expect([foreign.status, foreign.body.code]).toEqual([404, "agent_not_found"]);
    expect([none.status, none.body.code]).toEqual([404, "agent_not_found"]);
    expect(foreign.body.detail.replace(FOREIGN, "nobody")).toBe(none.body.detail);
    expect((await get("/v1/agents/own")).body.name).toBe("own");
  });
});

describe("the ledger", () => {
  test("a day before the agent existed has no entries and no bundle; the request is recorded as made", async () => {
    for (const format of ["json", "ndjson", "csv"]) {
      const { status, headers } = await get(`/v1/ledger?date=2020-01-01&limit=5&format=${format}`);
      expect([format, status, headers.get("gatehouse-next-cursor")]).toEqual([format, 200, null]);
    }
    expect((await get("/v1/ledger?date=2020-01-01")).body).toMatchObject({ data: [], next_cursor: null });
    const day = await get("/v1/ledger?date=2020-01-01&format=article14");
    expect([day.status, day.body.code]).toEqual([404, "agent_not_found"]);
    const seq = day.headers.get("gatehouse-ledger");
    const { detail } = (await gateway.call("GET", `/v1/ledger/${seq}`)).body;
    expect(detail.filters).toEqual({
      agent: "own",
      date: "2020-01-01",
      from: "2020-01-01T00:00:00.000Z",
      to: "2020-01-02T00:00:00.000Z",
    });
    // The period that the caller gives is checked first.
    const wrong = await get("/v1/ledger?from=2020-01-02T00:00:00Z&to=2020-01-01T00:00:00Z&format=article14");
    expect([wrong.status, wrong.body.code]).toEqual([422, "validation_failed"]);
  });

  test("the list has its agent's entries, from the creation of that agent on", async () => {
    const entries = await all("?order=asc");
    expect(seqsOf(entries)).toEqual(await expected());
    expect(new Set(entries.map(({ agent }) => agent))).toEqual(new Set(["own"]));
    expect(JSON.stringify(entries)).not.toContain(FOREIGN);
  });

  test.each([
    "&order=desc",
    "&action=task.dispatch",
    "&tier=1",
    `&date=${new Date().toISOString().slice(0, 10)}`,
  ])("with %s it contains the agent's part of the list", async (query) => {
    expect(seqsOf(await all(`?x=${query}`.replace("x=&", ""))).toSorted()).toEqual(
      (await expected(query)).toSorted(),
    );
  });

  test.each([`agent=${FOREIGN}`, "agent=nobody", "actor=system&agent=nobody"])(
    "nothing is listed for %s",
    async (query) => {
      expect((await get(`/v1/ledger?${query}`)).body).toEqual({ data: [], next_cursor: null });
      expect((await get(`/v1/ledger?${query}&format=ndjson`)).body).toBe(null);
      expect(
        String((await get(`/v1/ledger?${query}&format=csv`)).body)
          .trim()
          .split("\n"),
      ).toHaveLength(1);
    },
  );

  test("nothing is listed for another agent's task, whatever else is requested", async () => {
    for (const query of [
      `task=${foreignTask}`,
      `task=${foreignTask}&agent=own`,
      `task=${foreignTask}&agent=${FOREIGN}`,
    ]) {
      expect((await get(`/v1/ledger?${query}`)).body.data).toEqual([]);
    }
    const own = (await all(`?task=${ownTask}`)).map(({ seq }) => seq);
    expect(own.length).toBeGreaterThan(1);
    expect(await expected()).toEqual(expect.arrayContaining(seqsOf(await all(`?task=${ownTask}`))));
  });

  test.each(["ndjson", "csv"])("whole in %s it has the same entries", async (format) => {
    const headers = { authorization: `Bearer ${token}` };
    const body = await (await fetch(`${gateway.url}/v1/ledger?format=${format}`, { headers })).text();
    expect(body).not.toContain(FOREIGN);
    const lines = body.trim().split("\n");
    const entries = lines.filter((line) => format === "csv" || JSON.parse(line).actor !== `token:${tokenId}`);
    if (format === "ndjson") expect(entries.map((line) => JSON.parse(line).seq)).toEqual(await expected());
  });

  test("each entry and its proof can be read by number if and only if the entry is about its agent", async () => {
    const made = (await expected())[0] ?? 0;
    const about = await all("?agent=own&order=asc", gateway.admin);
    const listed = new Set(about.map(({ seq }) => seq).filter((seq) => seq >= made));
    const size = Math.min(200, (await all("?order=desc", gateway.admin))[0]?.seq ?? 0);
    for (let seq = 1; seq <= size; seq++) {
      const [entry, proof] = [await get(`/v1/ledger/${seq}`), await get(`/v1/ledger/${seq}/proof`)];
      expect([seq, entry.status, proof.status]).toEqual(listed.has(seq) ? [seq, 200, 200] : [seq, 404, 404]);
      if (!listed.has(seq)) expect([entry.body.code, proof.body.code]).toEqual(["not_found", "not_found"]);
    }
    expect(listed.size).toBeGreaterThan(10);
  });

  test("heads, keys and proofs between heads are only hashes, and can be read", async () => {
    for (const path of ["checkpoint", "key", "consistency?from=1"]) {
      const answer = await get(`/v1/ledger/${path}`);
      expect(answer.status).toBe(200);
      expect(JSON.stringify(answer.body)).not.toContain(FOREIGN);
    }
  });
});

describe("an Article 14 bundle", () => {
  async function bundle(query = ""): Promise<Blob> {
    const response = await fetch(`${gateway.url}/v1/ledger?format=article14${query}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.status).toBe(200);
    return response.blob();
  }

  const times = async () => {
    const seqs = await all("?order=asc");
    const at = (index: number) => seqs[index]?.ts ?? "";
    const others = await all(`?agent=${FOREIGN}`, gateway.admin);
    return {
      second: at(1),
      last: at(-1),
      middle: at(Math.floor(seqs.length / 2)),
      foreign: others[3]?.ts ?? "",
    };
  };

  test.each([
    ["whole", async () => ""],
    ["of a day", async () => `&date=${new Date().toISOString().slice(0, 10)}`],
    ["from a time", async () => `&from=${(await times()).middle}`],
    ["to a time", async () => `&to=${(await times()).middle}`],
    [
      "between two times of others",
      async () => `&from=${(await times()).foreign}&to=${(await times()).middle}`,
    ],
    ["of an action", async () => "&action=task.dispatch"],
    ["from before its agent existed", async () => "&from=2020-01-01T00:00:00.000Z"],
  ])("%s verifies, counts what it withholds, and contains nothing of others", async (_, query) => {
    const blob = await bundle(await query());
    const { vkey } = (await get("/v1/ledger/key")).body;
    expect(await verify(blob, trustIn(vkey))).toMatchObject({ verdict: "holds", findings: [] });
    const { files } = await Unpacked.of(blob);
    const text = (name: string) => new TextDecoder().decode(files[name]);
    for (const name of Object.keys(files))
      expect([name, text(name).includes(FOREIGN)]).toEqual([name, false]);
    const entries = text("entries.ndjson")
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    expect(entries.length).toBeGreaterThan(0);
    expect(new Set(entries.map(({ agent }) => agent))).toEqual(new Set(["own"]));
    const { counts, filters, edges } = JSON.parse(text("manifest.json"));
    expect(filters.agent).toBe("own");
    expect(counts.included).toBe(entries.length);
    expect(counts.withheld).toBeGreaterThan(0);
    expect(text("leaves.txt").trim().split("\n")).toHaveLength(counts.total);
    for (const edge of Object.values(edges) as { entry: string }[]) {
      expect(JSON.parse(edge.entry).agent).toBe("own");
    }
    expect(text("report.html")).toContain(
      "Not shown: this bundle was exported with a token that acts as an agent",
    );
  });

  test("has exactly its agent's entries of the period", async () => {
    const { middle } = await times();
    const { files } = await Unpacked.of(await bundle(`&from=${middle}`));
    const entries = new TextDecoder()
      .decode(files["entries.ndjson"])
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(entries.every(({ ts }) => ts >= middle)).toBe(true);
  });

  test("names the erased texts of its own agent", async () => {
    const { files } = await Unpacked.of(await bundle());
    const lines = new TextDecoder().decode(files["erasures.ndjson"]).trim().split("\n");
    // Three of its own tasks. Those of other agents and of the name's earlier agent are not listed.
    expect(lines).toHaveLength(3);
  });

  test("is not made for another agent: signing that it has no entries would be a lie", async () => {
    for (const agent of [FOREIGN, "nobody"]) {
      const answer = await get(`/v1/ledger?format=article14&agent=${agent}`);
      expect([answer.status, answer.body.code]).toEqual([404, "agent_not_found"]);
    }
  });
});

test("no read of the API returns anything about another agent", async () => {
  const paths = [
    ..."agents tasks approvals?status=all schedules models tiers connectors usage tokens sessions".split(" "),
    ..."session workspace webhooks webhooks/deliveries vault/documents vault/scopes ledger".split(" "),
  ];
  for (const path of paths) {
    const answer = await get(`/v1/${path}`);
    expect([path, answer.status, JSON.stringify(answer.body).includes(FOREIGN)]).toEqual([path, 200, false]);
  }
  for (const path of [`tasks/${foreignTask}`, `tasks/${foreignTask}/events`, `agents/${FOREIGN}`]) {
    expect([path, (await get(`/v1/${path}`)).status]).toEqual([path, 404]);
  }
});

test("over MCP it is offered only its own agent", async () => {
  const client = await connect(gateway, { token });
  const { tools } = await client.ask("tools/list");
  const { resources } = await client.ask("resources/list");
  expect(JSON.stringify([tools, resources])).not.toContain(FOREIGN);
  expect(tools.map(({ name }: { name: string }) => name)).toContain("agents__own");
  // The answer does not reveal whether an agent of that name exists.
  for (const agent of [FOREIGN, "nobody"]) {
    const params = (name: string) => ({ name, arguments: { prompt: "hi" } });
    for (const name of [`agents__${agent}`, `agents.${agent}`]) {
      expect((await client.refusal("tools/call", params(name))).data.code).toBe("agent_forbidden");
    }
  }
});

test("the feed reports only its own agent", async () => {
  const abort = new AbortController();
  const response = await fetch(`${gateway.url}/v1/events`, {
    headers: { authorization: `Bearer ${token}` },
    signal: abort.signal,
  });
  const reader = response.body?.getReader();
  await gateway.call("PATCH", `/v1/agents/${FOREIGN}`, { body: { owner: "x" } });
  await finishedTask(gateway, FOREIGN);
  await gateway.call("PATCH", "/v1/agents/own", { body: { owner: "x" } });
  let told = "";
  while (reader && !told.includes('"name":"own"')) {
    told += new TextDecoder().decode((await reader.read()).value);
  }
  abort.abort();
  expect(told).not.toContain(FOREIGN);
});

test("a token without an agent sees everything, as before", async () => {
  const auditor = await gateway.token({ scopes: ["ledger:read", "agents:read"] });
  expect((await get("/v1/agents", auditor)).body.data).toHaveLength(2);
  expect((await get("/v1/ledger/1", auditor)).status).toBe(200);
  expect((await all(`?agent=${FOREIGN}`, auditor)).length).toBeGreaterThan(300);
});
