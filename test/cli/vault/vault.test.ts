/** The vault's commands, whether or not a server is running on the data directory. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { fromSources } from "../../support/process.ts";
import { AGENT, type Desk, openDesk } from "../support.ts";

setDefaultTimeout(60_000);

const WIDE = 110;

interface Listed {
  id: string;
  title: string;
  scope: string;
  source_uri: string;
  metadata: object;
  content_type: string;
}

interface Line {
  path: string;
  status: string;
  id: string | null;
  title: string | null;
  reason: string | null;
}

describe.each([
  ["with a running server", true],
  ["with no server", false],
])("%s", (_, running) => {
  let desk: Desk;

  const put = (path: string, text: string | Uint8Array) => {
    mkdirSync(join(desk.cwd, path, ".."), { recursive: true });
    writeFileSync(join(desk.cwd, path), text);
  };
  const list = async (...args: string[]) =>
    JSON.parse(await desk.out(["vault", "list", "--json", ...args])) as Listed[];
  const add = (...args: string[]) => desk.cli(["vault", "add", ...args]);

  beforeAll(async () => {
    desk = openDesk();
    const admin = (await desk.out(["token", "create", "--name", "boss", "--scope", "admin"])).trim();
    const first = await desk.serve();
    expect((await desk.call(first, admin, "POST", "/v1/agents", AGENT)).status).toBe(201);
    if (!running) await first.end("SIGTERM");
    put("docs/refunds.md", "# Refund policy\n\nRefunds are paid back within 14 days of the return.\n");
    put(
      "docs/shop/shipping.html",
      "<title>Shipping &amp; more</title><p>Parcels take three working days.</p>",
    );
    put("docs/shop/opening_hours.txt", "The shop is open from 9:00 to 18:00.\n");
    put("docs/shop/days.csv", "country,days\nJapan,12\n");
    put("docs/logo.png", "PNG");
    symlinkSync("/etc", join(desk.cwd, "docs/etc"));
  });

  afterAll(() => desk.clear());

  test("a dry run says what would happen to each file, and changes nothing", async () => {
    const ran = await add("docs", "--scope", "support", "--dry-run");
    expect(ran.code).toBe(0);
    expect(ran.stdout.split("\n")).toEqual([
      "added: docs/refunds.md",
      "added: docs/shop/days.csv",
      "added: docs/shop/opening_hours.txt",
      "added: docs/shop/shipping.html",
      "dry run: added 4, replaced 0, unchanged 0, skipped 2, failed 0",
      "",
    ]);
    expect(await list()).toEqual([]);
  });

  test("a folder is added once, and then found unchanged", async () => {
    const first = await add(
      "docs",
      "--scope",
      "support",
      "--metadata",
      "team=shop",
      "--metadata",
      "year:=2026",
    );
    expect(first).toEqual({
      code: 0,
      stdout: "added 4, replaced 0, unchanged 0, skipped 2, failed 0\n",
      stderr: "skipped: docs/etc: a link that leads out of the folder\nskipped unsupported types: .png\n",
    });
    const documents = await list();
    expect(documents.map(({ title }) => title).sort()).toEqual([
      "Days",
      "Opening hours",
      "Refund policy",
      "Shipping & more",
    ]);
    for (const document of documents) {
      expect(document).toMatchObject({ scope: "support", metadata: { team: "shop", year: 2026 } });
    }
    const uri = pathToFileURL(join(desk.cwd, "docs/refunds.md")).href;
    expect(documents.map((document) => document.source_uri)).toContain(uri);
    // The same files under other names, added from another folder.
    const again = await add(join(desk.cwd, "docs"), "docs/shop/../refunds.md", "--scope", "support");
    expect(again.stdout).toBe("added 0, replaced 0, unchanged 4, skipped 2, failed 0\n");
  });

  test("a changed file replaces its document under the same id: text, scope, metadata", async () => {
    const before = new Map((await list()).map((document) => [document.source_uri, document.id]));
    put("docs/refunds.md", "# Refunds\n\nRefunds are paid back within 30 days of the return.\n");
    const text = await add("docs", "--scope", "support");
    expect(text.stdout).toBe("added 0, replaced 1, unchanged 3, skipped 2, failed 0\n");
    const moved = await add("docs/shop", "--scope", "support/shop", "--json");
    const lines = moved.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Line);
    expect(lines.map(({ status }) => status)).toEqual(["replaced", "replaced", "replaced"]);
    expect(Object.keys(lines[0] ?? {})).toEqual(["path", "status", "id", "title", "reason"]);
    expect(moved.stderr).toBe("added 0, replaced 3, unchanged 0, skipped 0, failed 0\n");
    const tagged = await add("docs/shop/days.csv", "--scope", "support/shop", "--metadata", "team=post");
    expect(tagged.stdout).toBe("added 0, replaced 1, unchanged 0, skipped 0, failed 0\n");
    const after = await list();
    expect(new Map(after.map((document) => [document.source_uri, document.id]))).toEqual(before);
    expect((await list("--scope", "support/shop")).length).toBe(3);
    expect(after.find(({ title }) => title === "Days")?.metadata).toEqual({ team: "post" });
    expect(after.find(({ title }) => title === "Refunds")?.metadata).toEqual({ team: "shop", year: 2026 });
  });

  test("search shows passages: for people, as JSON, within scopes, filters and an agent's memory", async () => {
    const shown = await desk.out(["vault", "search", "When are refunds paid back?"]);
    expect(shown).toStartWith("1. Refunds\n   support  file:///");
    expect(shown).toContain("\n   Refunds are paid back within 30 days of the return.\n");
    const titles = async (...args: string[]) => {
      const answer = JSON.parse(
        await desk.out(["vault", "search", "--json", "refunds Japan days", ...args]),
      ) as {
        results: { title: string }[];
      };
      return answer.results.map(({ title }) => title);
    };
    expect((await titles("--mode", "keyword")).sort()).toEqual(["Days", "Refunds", "Shipping & more"]);
    expect(await titles("--mode", "keyword", "--filter", "team=post")).toEqual(["Days"]);
    expect(await titles("--mode", "keyword", "--filter", "year:=2026", "--scope", "support/shop")).toEqual([
      "Shipping & more",
    ]);
    expect(await titles("--mode", "keyword", "--agent", "helper", "--top-k", "1")).toHaveLength(1);
    expect(await desk.out(["vault", "search", "refunds", "--scope", "legal"])).toBe("nothing found\n");
    const explained = await desk.out(["vault", "search", "refunds", "--top-k", "1", "--explain"]);
    expect(explained).toMatch(/^ {3}keyword: rank 1, score [\d.]+; vector: rank \d+, score [\d.]+$/m);
  });

  test("list shows people a table, newest first", async () => {
    const [header, first] = (await desk.out(["vault", "list", "--scope", "support"])).split("\n");
    expect(header).toMatch(/^ID\s+TITLE\s+SCOPE\s+CHUNKS\s+UPDATED\s+SOURCE$/);
    expect(first).toMatch(/^doc_[0-9a-z]{26}\s+.+\s+support(\/shop)?\s+1\s+20\d\d-\S+Z\s+file:\/\/\/\S+$/);
  });

  test("failures are reported, the rest continues, and the exit code is 1", async () => {
    put("mixed/broken.pdf", "not a PDF");
    put("mixed/empty.md", "");
    put("mixed/latin.txt", Uint8Array.of(99, 97, 102, 0xe9));
    put("mixed/right.txt", "This one is right.");
    put("mixed/too-large.txt", new Uint8Array(50 * 1024 * 1024).fill(97));
    const ran = await add("mixed", "--scope", "mixed");
    expect(ran.code).toBe(1);
    expect(ran.stdout).toBe("added 1, replaced 0, unchanged 0, skipped 1, failed 3\n");
    expect(ran.stderr).toContain("failed: mixed/broken.pdf: is not a PDF");
    expect(ran.stderr).toContain("failed: mixed/latin.txt: is not valid UTF-8");
    expect(ran.stderr).toContain("failed: mixed/too-large.txt: is too large: a document may have 50 MiB");
    expect(ran.stderr).toContain("skipped: mixed/empty.md: is empty");
    expect(ran.stderr).toEndWith("gatehouse: 3 files failed\n");
    const named = await add("mixed/latin.txt", "--scope", "mixed", "--type", "text/plain; charset=latin1");
    expect(named.stdout).toBe("added 1, replaced 0, unchanged 0, skipped 0, failed 0\n");
    expect(await desk.out(["vault", "search", "café", "--scope", "mixed", "--top-k", "1"])).toContain("café");
  });

  test("the data directory, which contains secrets, is never read", async () => {
    const ran = await add(".", "--scope", "all", "--dry-run");
    expect(ran.stdout).toContain("replaced: docs/refunds.md\n");
    expect(ran.stdout + ran.stderr).not.toContain("gatehouse-data");
    expect((await add("gatehouse-data/server.json", "--scope", "all")).code).toBe(2);
  });

  test("Ctrl-C leaves complete documents, and the next run adds the rest", async () => {
    for (let n = 0; n < 300; n++) put(`many/${n}.md`, `# Note ${n}\n\n${`word${n} and more. `.repeat(200)}`);
    const child = Bun.spawn([...(await fromSources()), "vault", "add", "many", "--scope", "notes"], {
      cwd: desk.cwd,
      env: { PATH: "", HOME: desk.cwd },
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = child.stderr.getReader();
    expect(new TextDecoder().decode((await said.read()).value)).toStartWith("[100/300]");
    child.kill("SIGINT");
    const rest: string[] = [];
    for (let part = await said.read(); !part.done; part = await said.read()) {
      rest.push(new TextDecoder().decode(part.value));
    }
    expect(await child.exited).toBe(1);
    const added = Number(/^added (\d+)/.exec(await new Response(child.stdout).text())?.[1]);
    expect(rest.join("")).toContain("stopping");
    expect(rest.join("")).toContain(`interrupted: ${300 - added} of 300 files were not sent`);
    expect(await list("--scope", "notes")).toHaveLength(added);
    rmSync(join(desk.cwd, "many/0.md"));
    const again = await add("many", "--scope", "notes");
    expect(again.stdout).toBe(
      `added ${300 - added}, replaced 0, unchanged ${added - 1}, skipped 0, failed 0\n`,
    );
  });

  test("another workspace has its own documents", async () => {
    await desk.out(["workspace", "create", "acme"]);
    expect((await add("docs/refunds.md", "--scope", "support", "--workspace", "acme")).code).toBe(0);
    expect(await list("--workspace", "acme")).toHaveLength(1);
    const nowhere = await add("docs", "--scope", "support", "--workspace", "nowhere");
    expect({ code: nowhere.code, stdout: nowhere.stdout }).toEqual({ code: 1, stdout: "" });
  });

  test("a task answers from the added documents, with no key and no network", async () => {
    const answer = await desk.out([
      "task",
      "run",
      "--agent",
      "helper",
      "--tool",
      "vault.search",
      "When are refunds paid back?",
    ]);
    expect(answer).toContain("Refunds are paid back within 30 days of the return.");
    expect(answer).toContain("[1] Refunds");
  });
});

describe("with nothing to do", () => {
  let desk: Desk;
  beforeAll(() => {
    desk = openDesk();
    writeFileSync(join(desk.cwd, "a.md"), "text");
    writeFileSync(join(desk.cwd, "a.log"), "text");
  });
  afterAll(() => desk.clear());

  test.each([[[]], [["add"]], [["search"]], [["list"]]])("help of vault %p fits a terminal", async (verb) => {
    const ran = await desk.cli(["vault", ...verb, "--help"]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    for (const line of ran.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(WIDE);
  });

  test.each([
    ["no path", ["add", "--scope", "a"], "path"],
    ["no scope", ["add", "a.md"], "--scope"],
    ["an invalid scope", ["add", "a.md", "--scope", "Legal"], "--scope must be a path"],
    ["a path that does not exist", ["add", "b.md", "--scope", "a"], "b.md does not exist"],
    ["an unknown type", ["add", "a.log", "--scope", "a"], "--type"],
    ["an unsupported type", ["add", "a.log", "--scope", "a", "--type", "image/png"], "--type"],
    ["invalid metadata", ["add", "a.md", "--scope", "a", "--metadata", "x"], "--metadata must be key=value"],
    ["no query", ["search"], "query"],
    ["an empty query", ["search", ""], "the query"],
    ["an invalid mode", ["search", "x", "--mode", "psychic"], "Allowed choices are"],
    ["too many passages", ["search", "x", "--top-k", "101"], "--top-k"],
    ["a non-number of passages", ["search", "x", "--top-k", "all"], "--top-k"],
    ["an invalid scope to search", ["search", "x", "--scope", "/a"], "--scope must be a path"],
    ["an invalid scope to list", ["list", "--scope", "A"], "--scope must be a path"],
  ])("%s is wrong usage", async (_, args, message) => {
    const ran = await desk.cli(["vault", ...args]);
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 2, stdout: "" });
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
  });

  test("an empty vault can be listed and searched, and nothing is added to it", async () => {
    mkdirSync(join(desk.cwd, "empty"));
    expect(await desk.out(["vault", "list", "--json"])).toBe("[]\n");
    expect(await desk.out(["vault", "search", "anything"])).toBe("nothing found\n");
    expect(await desk.out(["vault", "add", "empty", "--scope", "a"])).toBe(
      "added 0, replaced 0, unchanged 0, skipped 0, failed 0\n",
    );
    expect((await desk.cli(["vault", "search", "x", "--agent", "nobody"])).code).toBe(1);
  });
});
