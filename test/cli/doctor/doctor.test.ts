/** `gatehouse doctor` on installations that have something wrong, each in its own way. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clock } from "../../../src/cli/doctor/database.ts";
import { freeSpace } from "../../../src/cli/doctor/directory.ts";
import { bytesText, type Finding, fail, ok, statusOf, warn } from "../../../src/cli/doctor/finding.ts";
import { memory, openFiles } from "../../../src/cli/doctor/machine.ts";
import { tierFinding } from "../../../src/cli/doctor/models.ts";
import { storeFindings } from "../../../src/cli/doctor/store.ts";
import { NEWEST_VERSION } from "../../../src/store/postgres/upgrade.ts";
import { filesIn, servedOnce, stateOf } from "../backup/support.ts";
import { type Desk, openDesk } from "../support.ts";

let desk: Desk;
beforeEach(() => {
  desk = openDesk();
});
afterEach(() => desk.clear());
const at = (...parts: string[]) => join(desk.cwd, ...parts);

interface Examined {
  readonly code: number;
  readonly status: Finding["status"];
  readonly checks: readonly Finding[];
}

async function examine(args: readonly string[] = [], env: Record<string, string> = {}): Promise<Examined> {
  const { code, stdout } = await desk.cli(["doctor", "--listen", "127.0.0.1:0", "--json", ...args], env);
  const result = JSON.parse(stdout);
  // Whatever is wrong, it says what to do.
  for (const { status, hint } of result.checks) if (status !== "ok") expect(hint).toBeString();
  return { code, ...result };
}

const of = ({ checks }: Examined, check: string) => checks.filter((finding) => finding.check === check);

test("before the first start, nothing is created, and nothing fails", async () => {
  const examined = await examine();
  expect(examined).toMatchObject({ code: 0, status: "warn" });
  expect(of(examined, "data directory")[0]).toMatchObject({
    status: "warn",
    message: `${at("gatehouse-data")} does not exist yet`,
  });
  expect(filesIn(desk.cwd)).toEqual([]);
});

test("beside a server, all is well, and for people it is a table", async () => {
  await desk.serve();
  const { code, stdout, stderr } = await desk.cli(["doctor"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).not.toMatch(/^fail/m);
  expect(stdout).toMatch(/^ok {4}server +a server answers at http:\/\/127\.0\.0\.1:\d+, and is ready$/m);
  expect(stdout).toMatch(/^ok {4}keys +ledger\.key belongs to the database$/m);
  expect(stdout).toMatch(/^ok {4}keys +secrets\.key belongs to the database$/m);
  expect(stdout).toMatch(/\n\d+ ok, \d+ warnings, 0 failed\n$/);
});

test("a stopped server's directory is not changed", async () => {
  await servedOnce(desk);
  const before = stateOf(at("gatehouse-data"));
  expect(await examine()).toMatchObject({ code: 0 });
  expect(stateOf(at("gatehouse-data"))).toEqual(before);
});

describe("fails", () => {
  test("for each mistake in the configuration", async () => {
    mkdirSync(at("gatehouse-data"), { mode: 0o700 });
    writeFileSync(at("gatehouse-data", "gatehouse.yaml"), "listem: 1\nlimits: { concurrent_tasks: x }\n");
    const examined = await examine();
    expect(examined).toMatchObject({ code: 1, status: "fail" });
    expect(of(examined, "configuration").map(({ message }) => message)).toEqual([
      expect.stringContaining("listem"),
      expect.stringContaining("concurrent_tasks"),
    ]);
  });

  test("if the data directory is a file, or a link to nothing", async () => {
    writeFileSync(at("file"), "");
    symlinkSync(at("nothing"), at("link"));
    expect(of(await examine(["--data", "file"]), "data directory")).toMatchObject([{ status: "fail" }]);
    expect(of(await examine(["--data", "link"]), "data directory")[0]).toMatchObject({ status: "fail" });
  });

  test("if another program has the address", async () => {
    const other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const examined = await examine(["--listen", `127.0.0.1:${other.port}`]);
    other.stop(true);
    expect(of(examined, "server")).toMatchObject([
      { status: "fail", message: expect.stringContaining("another program does") },
    ]);
  });

  const changes: readonly (readonly [what: string, change: () => void, check: string, message: string])[] = [
    [
      "if a key is missing",
      () => rmSync(at("gatehouse-data", "ledger.key")),
      "keys",
      "ledger.key is missing",
    ],
    [
      "if other users can read a key",
      () => chmodSync(at("gatehouse-data", "secrets.key"), 0o644),
      "access",
      "other users may read or change keys: secrets.key",
    ],
    [
      "if a newer version has upgraded the database",
      () => runSql("PRAGMA user_version = 9999"),
      "database",
      "its schema is 9999",
    ],
    [
      "if the database is damaged",
      () => writeFileSync(at("gatehouse-data", "gatehouse.db"), "not a database at all".repeat(500)),
      "database",
      "cannot be read",
    ],
    [
      "if the folder of the checkpoint file does not exist",
      () =>
        writeFileSync(at("gatehouse-data", "gatehouse.yaml"), "ledger: { checkpoint_file: /no/such/file }\n"),
      "checkpoints",
      "/no/such/file cannot be written",
    ],
  ];
  test.each(changes)("%s", async (_what, change, check, message) => {
    await servedOnce(desk);
    change();
    const examined = await examine();
    expect(examined).toMatchObject({ code: 1, status: "fail" });
    expect(of(examined, check)).toContainEqual(
      expect.objectContaining({ status: "fail", message: expect.stringContaining(message) }),
    );
  });

  test("with the keys of another server", async () => {
    await servedOnce(desk);
    await servedOnce(desk, "other");
    for (const name of ["ledger.key", "secrets.key"]) {
      await Bun.write(at("gatehouse-data", name), Bun.file(at("other", name)));
      chmodSync(at("gatehouse-data", name), 0o600);
    }
    expect(of(await examine(), "keys")).toMatchObject([
      { status: "fail", message: "ledger.key does not belong to this database" },
      { status: "fail", message: "secrets.key does not belong to this database" },
    ]);
  });

  test("if the store of several servers cannot be reached, without its password", async () => {
    const examined = await examine([], { GATEHOUSE_STORE: "postgres://gate:pa55word@127.0.0.1:1/gatehouse" });
    expect(examined).toMatchObject({ code: 1 });
    expect(of(examined, "store")).toMatchObject([{ status: "fail" }]);
    expect(of(examined, "keys")).toMatchObject([{ status: "fail", message: "master_key is not set" }]);
    expect(JSON.stringify(examined)).not.toContain("pa55word");
  });
});

test("warns of an address that others can reach without TLS", async () => {
  const examined = await examine(["--listen", "0.0.0.0:0"]);
  expect(of(examined, "address")).toMatchObject([{ status: "warn" }]);
  const behind = await examine(["--listen", "0.0.0.0:0"], {
    GATEHOUSE_PUBLIC_URL: "https://gate.example.org",
  });
  expect(of(behind, "address")).toEqual([]);
});

function runSql(sql: string): void {
  const database = new Database(at("gatehouse-data", "gatehouse.db"));
  database.run(sql);
  database.close();
}

describe("what a machine here does not have", () => {
  const GB = 1_000_000_000;
  const HOUR = 3_600_000;
  const healthy = {
    ...{ version: "15.18", schema: NEWEST_VERSION, clockAheadMs: 0, maxConnections: 100 },
    ...{ unsafe: [], isSuperuser: false },
  };
  const model = (name: string, reachable: boolean | null, refused = false) => ({
    ...{ name, reachable, refused },
    unreachable_reason: reachable === false ? "connection refused" : null,
  });
  const findings: readonly (readonly [what: string, found: Finding, status: Finding["status"]])[] = [
    ["few open files", openFiles(1_024), "warn"],
    ["hardly any open files", openFiles(127), "fail"],
    ["enough open files", openFiles(4_096), "ok"],
    ["no limit on open files", openFiles(null), "ok"],
    ["little memory", memory(0, 400_000_000), "warn"],
    ["little memory in a container", memory(300_000_000, 8 * GB), "warn"],
    ["no limit of a container", memory(2 ** 63, 8 * GB), "ok"],
    ["a full disk", freeSpace(1_000_000, false, 0), "fail"],
    ["no inodes", freeSpace(100 * GB, true, 0), "fail"],
    ["less room than an upgrade may need", freeSpace(11 * GB, false, 6 * GB), "warn"],
    ["room enough", freeSpace(13 * GB, false, 6 * GB), "ok"],
    ["a clock in the past", clock(2 * HOUR, HOUR), "fail"],
    ["a clock that is right", clock(HOUR, HOUR + 1), "ok"],
    ["a tier without a model", tierFinding(1, [model("a/x", false), model("a/y", true, true)]), "fail"],
    ["a tier with a model that is away", tierFinding(1, [model("a/x", false), model("a/y", true)]), "warn"],
    ["a tier with the embedded model", tierFinding(1, [model("builtin/extractive", null)]), "ok"],
  ];
  test.each(findings)("%s", (_what, found, status) => {
    expect(found.status).toBe(status);
    expect(found.hint === undefined).toBe(status === "ok");
  });

  const stores: readonly (readonly [
    what: string,
    facts: object,
    check: string,
    status: Finding["status"],
  ])[] = [
    ["nothing wrong", {}, "store", "ok"],
    ["an empty database", { schema: 0 }, "store", "warn"],
    ["an older schema", { schema: NEWEST_VERSION - 1 }, "store", "warn"],
    ["a newer schema", { schema: NEWEST_VERSION + 1 }, "store", "warn"],
    ["fsync off", { unsafe: ["fsync"] }, "durability", "fail"],
    ["few connections", { maxConnections: 20 }, "connections", "warn"],
    ["another time", { clockAheadMs: -60_000 }, "clock", "warn"],
    ["a superuser", { isSuperuser: true }, "rights", "warn"],
  ];
  test.each(stores)("a store with %s", (_what, facts, check, status) => {
    const found = storeFindings({ ...healthy, ...facts });
    expect(found.find((finding) => finding.check === check)?.status).toBe(status);
    expect(found.filter((finding) => finding.status !== "ok")).toHaveLength(status === "ok" ? 0 : 1);
  });
});

test("the worst finding counts", () => {
  expect(statusOf([])).toBe("ok");
  expect(statusOf([ok("a", "")])).toBe("ok");
  expect(statusOf([ok("a", ""), warn("b", "", "")])).toBe("warn");
  expect(statusOf([fail("c", "", ""), warn("b", "", "")])).toBe("fail");
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_000, "1.0 kB"],
  [1_550_000_000, "1.6 GB"],
  [2e15, "2000.0 TB"],
])("%d bytes are shown as %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});
