import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { Parser } from "htmlparser2";
import { Unpacked } from "../verify/bundle/support.ts";
import { type BundleBench, openBench, story } from "./support.ts";

async function reportOf(
  bench: BundleBench,
  request: Parameters<BundleBench["zip"]>[0] = {},
): Promise<string> {
  return (await Unpacked.of(await bench.zip(request))).text("report.html");
}

/** A page's text as a reader sees it, and the faults of its tags. */
function read(page: string): {
  readonly text: string;
  readonly faults: string[];
  readonly tags: Set<string>;
} {
  const VOID = new Set(["meta", "br"]);
  const open: string[] = [];
  const faults: string[] = [];
  const tags = new Set<string>();
  let text = "";
  let isHidden = false;
  const parser = new Parser(
    {
      onopentagname(name) {
        tags.add(name);
        isHidden ||= name === "style";
        if (!VOID.has(name)) open.push(name);
      },
      onattribute(name) {
        if (/^on|^style$|^src$|^href$/.test(name)) faults.push(`an attribute ${name}`);
      },
      ontext(part) {
        if (!isHidden) text += part;
      },
      onclosetag(name, isImplied) {
        if (name === "style") isHidden = false;
        if (VOID.has(name)) return;
        if (isImplied && !["rect", "line"].includes(name)) faults.push(`${name} is not closed`);
        if (open.pop() !== name) faults.push(`${name} is closed out of its place`);
      },
    },
    { recognizeSelfClosing: true },
  );
  parser.end(page);
  return { text: text.replace(/\s+/g, " "), faults: [...faults, ...open], tags };
}

describe("the report of some weeks", () => {
  let bench: BundleBench;
  let page: string;
  let text: string;

  beforeAll(async () => {
    bench = await openBench();
    await story(bench, 30);
    page = await reportOf(bench);
    text = read(page).text;
  });
  afterAll(() => bench.close());

  test("is complete, runs nothing and loads nothing", () => {
    const { faults, tags } = read(page);
    expect(faults).toEqual([]);
    for (const tag of ["script", "img", "link", "iframe", "object", "a"])
      expect([tag, tags.has(tag)]).toEqual([tag, false]);
    expect(page).not.toMatch(/url\(|@import|javascript:/i);
    expect(page.replaceAll('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:/);
  });

  test("allows its own style and nothing else", () => {
    const style = /<style>([\s\S]*?)<\/style>/.exec(page)?.[1] ?? "";
    const hash = new Bun.CryptoHasher("sha256").update(style).digest("base64");
    expect(page).toContain(
      `content="default-src &#39;none&#39;; style-src &#39;sha256-${hash}&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;"`,
    );
  });

  test("counts according to the entries", () => {
    const entries = bench.rows().map(({ bytes }) => JSON.parse(bytes));
    const count = (matches: (entry: Record<string, unknown>) => boolean) => entries.filter(matches).length;
    const worded = (decision: string) =>
      entries.filter(({ oversight }) => oversight?.decision === decision).length;
    const expected: [number, string][] = [
      [
        count(({ oversight, outcome }) => oversight !== undefined && outcome !== "denied"),
        "decisions by people",
      ],
      [worded("approve"), "approvals"],
      [worded("change") + worded("override") + worded("disregard"), "overrides"],
      [worded("expire"), "requests that nobody decided in time"],
      [worded("deny"), "denials"],
      [worded("stop"), "stops"],
      [worded("resume"), "resumptions"],
      [count(({ action, phase }) => action === "task.dispatch" && phase === "intent"), "tasks dispatched"],
      [count(({ action, phase }) => action === "model.call" && phase === "intent"), "model calls"],
      [count(({ action, phase }) => action === "tool.call" && phase === "intent"), "tool calls"],
      [
        count(({ action }) => action === "auth.refused" || action === "limit.exceeded"),
        "calls refused by policy",
      ],
      [
        count(({ outcome, action }) => outcome === "failed" && action !== "ledger.foreign_write"),
        "calls failed",
      ],
    ];
    for (const [value, name] of expected) {
      expect(value).toBeGreaterThan(0);
      expect(page).toContain(`<li><b>${value}</b>${name}</li>`);
    }
  });

  test("shows who could oversee, by which right, since when and until when", () => {
    for (const said of [
      "Ada Lovelace claims supervisor approve, deny, stop, resume; read the ledger",
      "2027-01-01 00:00:00",
      "Alan Turing head of operations approve, deny, stop, resume; dispatch and cancel tasks; change agents",
      "Charles Babbage clerk",
      "revoked 2026-01-02",
      "no person named – everything",
      "1 other token could be used but could not decide",
    ]) {
      expect(words(text)).toContain(words(said));
    }
  });

  test("shows what was decided, and how long it took", () => {
    for (const said of [
      "Decisions by person",
      "Time from presentation to decision",
      "under 5 s 5 s to 30 s 30 s to 2 min 2 min to 10 min 10 min to 1 h over 1 h",
      "Each decision",
    ]) {
      expect(words(text)).toContain(words(said));
    }
  });

  test("quotes the Regulation, and names what supports it and what is missing", () => {
    for (const said of [
      "Article 14(4)(a)",
      "to remain aware of the possible tendency of automatically relying or over-relying on the output",
      "Article 14(4)(c)",
      "not to use the high-risk AI system or to otherwise disregard, override or reverse the output",
      "come to a halt in a safe state",
      "Article 12(1)",
      "Article 19(1)",
      "Article 26(2)",
      "Article 12(2)",
      "the logs shall be kept for a period appropriate",
      "Article 26(5)",
      "Article 26(6)",
      "Not in this bundle",
      "For these texts that is less than six months: the provider or deployer",
    ]) {
      expect(text).toContain(said);
    }
  });

  test("names models, tools, refusals, incidents, erasures and checkpoints", () => {
    for (const said of [
      "anthropic/claude-sonnet-5",
      "crm.lookup",
      "model_unavailable",
      "unknown_tool",
      "ledger.foreign_write",
      "ledger.rotate_key",
      "up to entry 20, because of their age",
      "The latest checkpoints that the gateway signed on schedule",
    ]) {
      expect(text).toContain(said);
    }
  });

  test("of a period uses earlier entries to show who could oversee, without people who no longer could", async () => {
    const later = read(await reportOf(bench, { filter: { from: "2026-01-20T00:00:00.000Z" } })).text;
    expect(later).toContain("Ada Lovelace");
    expect(later).not.toContain("Charles Babbage");
  });

  test("names what a filter leaves out, and describes only the included entries", async () => {
    const part = read(await reportOf(bench, { filter: { agent: "mailer", action: "task.read" } })).text;
    expect(part).toContain("entries of the period are withheld by the filter");
    expect(part).toContain("agent is mailer, action is task.read");
    expect(part).toContain("No model call was recorded among the included entries.");
    expect(part).not.toContain("recorded in this period");
  });
});

describe("the report of a ledger with", () => {
  let bench: BundleBench;
  beforeEach(async () => {
    bench = await openBench();
  });
  afterEach(() => bench.close());

  test("no decisions reports that, and counts nothing as evidence", async () => {
    const { text, faults } = read(await reportOf(bench));
    expect(faults).toEqual([]);
    for (const said of [
      "none were recorded in this period",
      "No decision by a person was recorded in this period",
      "None: no approval or denial was recorded in this period.",
      "No stop was recorded in this period. Tokens with the right to stop: 0",
      "None: no entry was recorded in this period.",
      "No token that could decide was recorded",
    ]) {
      expect(text).toContain(said);
    }
  });

  test("stops shows what each one stopped", async () => {
    const by = (decision: string) => ({ person: "Ada", decision });
    await bench.add({ action: "oversight.stop", agent: "scout", oversight: by("stop") });
    for (const extent of ["workspace", "node"]) {
      await bench.add({ action: "oversight.stop", detail: { extent }, oversight: by("stop") });
    }
    await bench.add({ action: "oversight.resume", detail: { extent: "node" }, oversight: by("resume") });
    const { text, faults } = read(await reportOf(bench));
    expect(faults).toEqual([]);
    for (const said of [
      "Stops, of agents or of the whole workspace: 3, resumptions: 1",
      "stoppedagent scout",
      "stoppedthe whole workspace",
      "stoppedevery workspace of the node",
      "resumedevery workspace of the node",
    ]) {
      expect(text).toContain(said);
    }
  });

  test("hostile names shows them unchanged, and is not affected by them", async () => {
    const hostile = `<script>alert(1)</script><img src=x onerror="alert(2)">'"&amp;</td></table>\u202eevil\u0007`;
    await bench.add({
      action: "token.issue",
      detail: { token: hostile, name: hostile, person: hostile, role: hostile, scopes: `admin ${hostile}` },
    });
    await bench.add({
      action: "oversight.stop",
      actor: hostile,
      agent: hostile,
      task: hostile,
      tool: hostile,
      oversight: { person: hostile, role: hostile, decision: hostile },
    });
    await bench.add({ action: hostile, outcome: "denied", code: hostile, agent: hostile });
    await bench.add({ action: "model.call", phase: "intent", model: hostile, agent: hostile });
    await bench.add({ action: "tool.call", outcome: "failed", tool: hostile, code: hostile });
    await bench.add({
      action: "agent.update",
      agent: hostile,
      actor: hostile,
      detail: { owner: hostile, fields: hostile },
    });
    await bench.add({ action: "ledger.foreign_write", outcome: "failed", detail: { what: hostile } });
    await bench.add({ action: "payload.erase", actor: hostile, detail: { payloads: "1.input" } });
    const page = await reportOf(bench, {
      filter: {},
      date: hostile,
      exportedBy: { actor: hostile, person: hostile, role: hostile },
    });
    const { faults, tags, text } = read(page);
    expect(faults).toEqual([]);
    expect([tags.has("script"), tags.has("img")]).toEqual([false, false]);
    expect(page).not.toContain("\u202e");
    expect(text).toContain("<script>alert(1)</script>");
  });

  test("refused calls under made-up names still names every model and tool that was called", async () => {
    for (let at = 0; at < 260; at++) {
      await bench.add({
        action: "model.call",
        outcome: "denied",
        code: "model_forbidden",
        model: `up/fake${at}`,
      });
      await bench.add({ action: "tool.call", outcome: "denied", code: "unknown_tool", tool: `fake.t${at}` });
    }
    await bench.add({ action: "tool.call", phase: "intent", tool: "time.now" });
    for (const model of ["up/first", "up/second"]) {
      await bench.add({ action: "model.call", outcome: "denied", code: "credits_exhausted", model });
      await bench.add({ action: "model.call", phase: "intent", model });
    }
    const { text, faults } = read(await reportOf(bench));
    expect(faults).toEqual([]);
    for (const said of ["up/first", "up/second", "time.now"]) expect(text).toContain(said);
    expect(text).not.toMatch(/fake/);
    expect(words(text)).toContain("refusedunderothernames0000260");
  });

  test("far too much shows part of it, and how much is omitted", async () => {
    for (let at = 0; at < 260; at++) {
      const name = `n${String(at).padStart(3, "0")}`;
      await bench.add({
        action: "oversight.approve",
        agent: name,
        oversight: { person: `person ${name}`, decision: "approve" },
      });
      await bench.add({ action: "model.call", phase: "intent", model: `m/${name}`, tier: 1 });
      await bench.add({ action: "tool.call", phase: "intent", tool: `t.${name}` });
      await bench.add({ action: "agent.update", agent: name, detail: { version: at } });
      await bench.add({ action: `act.${name}`, outcome: "denied", code: name });
      await bench.add({
        action: "token.issue",
        detail: { token: `tok_${name}`, scopes: "approvals:write", person: name },
      });
      await bench.add({ action: "ledger.foreign_write", outcome: "failed" });
      await bench.add({ action: "payload.erase", detail: { payloads: "1.input" } });
    }
    const page = await reportOf(bench);
    const { text, faults } = read(page);
    expect(faults).toEqual([]);
    for (const said of [
      "60 more in oversight.csv.",
      "Further people are counted only in the totals.",
      "further models",
      "further tools",
      "Further agents are counted only in the totals.",
      "160 more in entries.ndjson.",
      "110 more tokens that can decide.",
      "200 more in entries.ndjson.",
      "200 more in erasures.ndjson.",
      "<li><b>260</b>approvals</li>",
    ]) {
      expect(said.startsWith("<") ? page : text).toContain(said);
    }
    expect(page.length).toBeLessThan(400_000);
  });

  test("foreign entries counts them, and continues", async () => {
    // From a version that signed no heads: what another program had written was signed along with everything else.
    const old = await openBench((path) => {
      const bytes = '{"seq":"none","ts":"2026-01-02T03:04:05.000Z"}';
      const leaf = new Bun.CryptoHasher("sha256").update(`\0${bytes}`).digest();
      const database = new Database(path);
      database.run("INSERT INTO ledger VALUES (1, 1, zeroblob(32), ?, ?)", [leaf, bytes]);
      database.close();
    });
    await old.add({ action: "task.read" });
    const { text } = read(await reportOf(old));
    await old.close();
    expect(text).toContain("1 entry is not in the form that this program writes");
  });
});

function words(text: string): string {
  return text.replace(/\s+/g, "");
}
