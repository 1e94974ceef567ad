import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { CSV_COLUMNS } from "../../src/http/ledger/csv.ts";
import type { TestGateway } from "../support/gateway.ts";
import { type Entry, type Ledgered, ledgerOf, linesOf, listed } from "./ledger-export-support.ts";

const AGENTS = ["scout", "clerk", "rare"];
const COUNT = 1_500;
let ledger: Ledgered;
let gateway: TestGateway;
/** The entries from before the first request. Each request adds one, at a later time. */
let entries: Entry[];
let until: string;

beforeAll(async () => {
  ledger = await ledgerOf(COUNT, (index) => ({
    action: index % 3 === 0 ? "task.read" : "model.call",
    agent: AGENTS[index % 97 === 0 ? 2 : index % 2],
    tier: 1 + (index % 4),
    credits: index,
    ...(index % 50 === 0
      ? { oversight: { person: "=Ada", role: "officer, acting", decision: "approve", target_seq: index } }
      : {}),
  }));
  gateway = await ledger.start();
  ledger.clock.advance(3_600_000);
  until = new Date(ledger.clock.now()).toISOString();
  ledger.clock.advance(3_600_000);
  entries = await listed(gateway, `&to=${until}`);
  expect(entries.length).toBeGreaterThan(COUNT);
});
afterAll(async () => {
  await gateway.stop();
  ledger.remove();
});

/** The answer's raw text, not parsed. */
async function get(query: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${gateway.url}/v1/ledger?${query}`, {
    headers: { authorization: `Bearer ${gateway.admin}`, ...headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}
const detailOf = async (headers: Headers) =>
  (await gateway.call("GET", `/v1/ledger/${headers.get("gatehouse-ledger")}`)).body as Entry;

describe("refused, and the field is named", () => {
  test.each<[query: string, accept: string | undefined, field: string]>([
    ["format=xml", undefined, "/format"],
    ["format=", undefined, "/format"],
    ["format=csv&format=csv", undefined, "/format"],
    ["format=article14&order=desc", undefined, "/order"],
    ["format=article14&from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z", undefined, "/to"],
    ["format=article14&date=2026-01-02&from=2026-01-03T00:00:00Z", undefined, "/to"],
    ["format=article14&limit=10", undefined, "/limit"],
    ["format=article14&cursor=MQ", undefined, "/cursor"],
    ["order=desc", "application/zip", "/order"],
    ["limit=10", "application/zip", "/limit"],
    ["format=ndjson&limit=0", undefined, "/limit"],
    ["format=ndjson&limit=201", undefined, "/limit"],
    ["format=csv&cursor=nonsense", undefined, "/cursor"],
    ["format=csv&order=up", undefined, "/order"],
    ["format=csv&date=2026-02-30", undefined, "/date"],
    ["format=ndjson&from=yesterday", undefined, "/from"],
  ])("%s, Accept: %s: %s", async (query, accept, field) => {
    const { status, text, headers } = await get(query, accept === undefined ? {} : { accept });
    const body = JSON.parse(text);
    expect([status, body.code, body.errors[0].path]).toEqual([422, "validation_failed", field]);
    expect(headers.get("content-type")).toBe("application/problem+json");
  });

  test("without a token, and without the scope", async () => {
    const none = await gateway.call("GET", "/v1/ledger?format=csv", { token: null });
    const token = await gateway.token({ scopes: ["agents:read"] });
    const other = await gateway.call("GET", "/v1/ledger?format=ndjson", { token });
    expect([none.status, none.body.code, other.status, other.body.code]).toEqual([
      401,
      "unauthenticated",
      403,
      "scope_missing",
    ]);
  });

  test("a refused Article 14 export is recorded as requested", async () => {
    const { headers } = await get("format=article14&order=desc&agent=scout");
    expect(await detailOf(headers)).toMatchObject({
      action: "ledger.export",
      outcome: "denied",
      code: "validation_failed",
      detail: { format: "article14", order: "desc", filters: { agent: "scout" } },
    });
  });
});

describe("the format is that of the query, else the most preferred of Accept, else JSON", () => {
  const NDJSON = "application/x-ndjson";
  const CSV = "text/csv; charset=utf-8; header=present";
  test.each<[query: string, accept: string, type: string]>([
    ["", "text/html,application/xml;q=0.9", "application/json"],
    ["", "*/*", "application/json"],
    ["", "application/json, text/csv", "application/json"],
    ["", "application/x-ndjson", NDJSON],
    ["", "application/jsonl", "application/jsonl"],
    ["", "application/ndjson, application/json;q=0.9", "application/ndjson"],
    ["", "text/csv;q=0.5, application/x-ndjson;q=0.4, */*;q=0.1", CSV],
    ["&format=json", "text/csv", "application/json"],
    ["&format=csv", "application/x-ndjson", CSV],
    ["&format=ndjson", "application/json", NDJSON],
  ])("%s, Accept: %s: %s", async (query, accept, type) => {
    for (const page of ["limit=3", `to=${until}&agent=rare`]) {
      const { status, headers } = await get(page + query, { accept });
      expect([status, headers.get("content-type"), headers.get("vary")]).toEqual([200, type, "accept"]);
    }
  });
});

describe("whole", () => {
  test("ndjson: the same objects as in lists, one per line", async () => {
    const { text, headers } = await get(`format=ndjson&to=${until}`);
    expect(linesOf(text)).toEqual(entries);
    expect(Object.keys(linesOf(text)[0] ?? {})).toEqual(Object.keys(entries[0] ?? {}));
    expect(headers.get("content-disposition")).toMatch(
      /^attachment; filename="gatehouse-default-start-20260102T\d{6}Z\.ndjson"$/,
    );
  });

  test("csv: one row each, with the same values; a formula is prefixed with an apostrophe", async () => {
    const { text, headers } = await get(`format=csv&to=${until}&from=2026-01-02T00:00:00%2B01:00`);
    const rows: Record<string, string>[] = parse(text, { columns: true, record_delimiter: "\r\n" });
    expect(rows.map(({ seq, leaf }) => [Number(seq), leaf])).toEqual(
      entries.map(({ seq, leaf }) => [seq, leaf as string]),
    );
    expect(Object.keys(rows[0] ?? {})).toEqual([...CSV_COLUMNS]);
    const decided = entries.find((entry) => entry.oversight !== null);
    expect(rows[(decided?.seq ?? 0) - 1]).toMatchObject({
      oversight_person: "'=Ada",
      oversight_role: "officer, acting",
      oversight_decision: "approve",
      oversight_presented_at: "",
      detail: JSON.stringify(decided?.detail),
    });
    expect(headers.get("content-disposition")).toMatch(/-20260101T230000Z-20260102T\d{6}Z\.csv"$/);
  });

  test("no match: no line in ndjson, only column names in csv", async () => {
    const [ndjson, csv] = await Promise.all([
      get("format=ndjson&agent=nobody"),
      get("format=csv&agent=nobody"),
    ]);
    expect([ndjson.status, ndjson.text]).toEqual([200, ""]);
    expect(csv.text).toBe(`${CSV_COLUMNS.join(",")}\r\n`);
  });

  test("the entries are the same as in a list, whatever the filter, order and starting point", async () => {
    const filter = fc.record(
      {
        agent: fc.constantFrom(...AGENTS, "nobody"),
        action: fc.constantFrom("model.call", "task.read", "workspace.create"),
        tier: fc.integer({ min: 1, max: 5 }),
        actor: fc.constantFrom("system", "user:nobody"),
        order: fc.constantFrom("asc", "desc"),
        from: fc.integer({ min: 0, max: 6 }).map((minutes) => instant(minutes)),
        cursor: fc
          .integer({ min: 1, max: COUNT + 5 })
          .map((seq) => Buffer.from(String(seq)).toString("base64url")),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(filter, fc.constantFrom("ndjson", "csv"), async (given, format) => {
        const query = new URLSearchParams({ ...stringified(given), to: until, format });
        const { text } = await get(query.toString());
        const after = given.cursor === undefined ? undefined : Number(Buffer.from(given.cursor, "base64url"));
        const expected = entries
          .filter((entry) =>
            (["agent", "action", "tier", "actor"] as const).every(
              (field) => given[field] === undefined || entry[field] === given[field],
            ),
          )
          .filter((entry) => given.from === undefined || String(entry.ts) >= given.from)
          .filter(
            (entry) =>
              after === undefined || (given.order === "desc" ? entry.seq < after : entry.seq > after),
          )
          .map(({ seq }) => seq);
        if (given.order === "desc") expected.reverse();
        const seqs =
          format === "ndjson"
            ? linesOf(text).map(({ seq }) => seq)
            : (parse(text, { columns: true }) as { seq: string }[]).map(({ seq }) => Number(seq));
        expect(seqs).toEqual(expected);
      }),
      { numRuns: 40 },
    );
  }, 30_000);

  test("the export's entry records what was exported: the format, the filters and the size of the ledger", async () => {
    const query = `format=csv&to=${until}&agent=rare&tier=2&action=model.call&actor=system&date=2026-01-02&order=desc`;
    const { headers } = await get(query);
    const { action, outcome, detail } = await detailOf(headers);
    expect({ action, outcome }).toEqual({ action: "ledger.read", outcome: "succeeded" });
    expect(detail).toEqual({
      format: "csv",
      size: Number(headers.get("gatehouse-ledger")) - 1,
      order: "desc",
      filters: {
        agent: "rare",
        tier: 2,
        action: "model.call",
        actor: "system",
        date: "2026-01-02",
        from: "2026-01-02T00:00:00.000Z",
        to: until,
      },
    });
    const secret = await get(`format=csv&actor=${gateway.admin}`);
    expect(JSON.stringify(await detailOf(secret.headers))).not.toContain(gateway.admin);
  });
});

describe("an Article 14 bundle", () => {
  test.each<[query: string, accept: string]>([
    ["&format=article14&order=asc", "application/json"],
    ["", "application/zip"],
  ])("by %p and Accept %s: a zip, recorded as an export", async (query, accept) => {
    const { status, headers, text } = await get(`agent=rare&to=${until}${query}`, { accept });
    expect([status, headers.get("content-type")]).toEqual([200, "application/zip"]);
    expect(text).toStartWith("PK\u0003\u0004");
    expect(text).toContain("manifest.json");
    expect(headers.get("content-disposition")).toMatch(
      /^attachment; filename="gatehouse-default-start-\w+\.zip"$/,
    );
    expect(await detailOf(headers)).toMatchObject({
      action: "ledger.export",
      outcome: "succeeded",
      detail: { format: "article14", filters: { agent: "rare", to: until } },
    });
  });
});

describe("pages", () => {
  test.each(["ndjson", "csv"])(
    "of %s continue at the header's cursor, and visit each entry once",
    async (format) => {
      for (const [query, expected] of [
        ["", entries],
        ["&order=desc&agent=rare", entries.filter(({ agent }) => agent === "rare").reverse()],
      ] as const) {
        const seqs: number[] = [];
        for (let cursor: string | null = ""; cursor !== null; ) {
          const more: string = cursor === "" ? "" : `&cursor=${cursor}`;
          const { text, headers } = await get(`format=${format}&limit=199&to=${until}${query}${more}`);
          const rows = format === "ndjson" ? linesOf(text) : (parse(text, { columns: true }) as Entry[]);
          expect(rows.length).toBeLessThanOrEqual(199);
          seqs.push(...rows.map(({ seq }) => Number(seq)));
          cursor = headers.get("gatehouse-next-cursor");
        }
        expect(seqs).toEqual(expected.map(({ seq }) => seq));
      }
    },
  );
});

test("the document names the formats", async () => {
  const { body } = await gateway.call("GET", "/openapi.json");
  const { responses, parameters } = body.paths["/v1/ledger"].get;
  expect(Object.keys(responses["200"].content)).toEqual([
    "application/json",
    "application/x-ndjson",
    "text/csv",
    "application/zip",
  ]);
  const format = parameters.find(({ name }: { name: string }) => name === "format");
  expect(format.schema.enum).toEqual(["json", "ndjson", "csv", "article14"]);
  expect(parameters).toContainEqual(expect.objectContaining({ in: "header", name: "Accept" }));
});

/** A time in the minutes during which the entries were written. */
function instant(minutes: number): string {
  return new Date(Date.parse(String(entries[10]?.ts)) + minutes * 60_000).toISOString();
}

function stringified(given: Readonly<Record<string, string | number | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]));
}
