/** Evidence written, exported and verified with nothing but the one shipped file. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENT, type Desk, openDesk } from "../cli/support.ts";
import { BINARY } from "../support/process.ts";

setDefaultTimeout(60_000);

let desk: Desk;

beforeEach(() => {
  desk = openDesk({ program: BINARY });
});

afterEach(() => desk.clear());

test("the ledger verifies while a server runs, after the server was killed, and as a bundle; every change is named", async () => {
  const server = await desk.serve();
  const token = readFileSync(join(desk.cwd, "gatehouse-data", "admin.token"), "utf8").trim();
  expect((await desk.call(server, token, "POST", "/v1/agents", AGENT)).status).toBe(201);
  for (let round = 0; round < 10; round++) {
    await Promise.all(Array.from({ length: 30 }, () => desk.call(server, token, "GET", "/v1/agents")));
  }
  writeFileSync(join(desk.cwd, "checkpoint"), await desk.out(["ledger", "checkpoint"]));
  writeFileSync(join(desk.cwd, "key"), await desk.out(["ledger", "key"]));
  await desk.out(["ledger", "export", "--output", "evidence.zip"]);
  const trust = ["--key", "key", "--checkpoint", "checkpoint"];
  expect(await desk.out(["ledger", "verify", ...trust])).toContain("Workspace default: holds");
  expect(await desk.out(["ledger", "verify", "--bundle", "evidence.zip", ...trust])).toContain("Holds:");
  await server.end("SIGKILL");
  expect(await desk.out(["ledger", "verify", ...trust])).toContain("Workspace default: holds");

  // The next program that opens the database and closes it cleanly writes the log into the file.
  await desk.out(["token", "list"]);
  const path = join(desk.cwd, "gatehouse-data", "gatehouse.db");
  const file = readFileSync(path);
  const text = '"action":"agent.create"';
  const at = file.indexOf(text);
  file.write(text.replace("create", "delete"), at);
  writeFileSync(path, file);
  const ran = await desk.cli(["ledger", "verify", "--json"]);
  expect(ran.code).toBe(1);
  expect(JSON.parse(ran.stdout)).toMatchObject({ ledgers: [{ findings: [{ code: "entry_changed" }] }] });
});
