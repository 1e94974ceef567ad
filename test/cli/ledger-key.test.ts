/** `gatehouse ledger checkpoint`, `key` and `rotate-key`. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createPublicKey, verify } from "node:crypto";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseSignedCheckpoint } from "../../src/ledger/proof/checkpoint.ts";
import { parseVerifierKey, signersOf } from "../../src/ledger/proof/note.ts";
import { sha256 } from "../../src/ledger/tree-hash.ts";
import { type Desk, openDesk } from "./support.ts";

setDefaultTimeout(60_000);

let desk: Desk;
beforeEach(() => {
  desk = openDesk();
});
afterEach(() => desk.clear());

const keyFile = () => join(desk.cwd, "gatehouse-data", "ledger.key");
const out = (...args: string[]) => desk.out(["ledger", ...args]);
const keys = async (...args: string[]) =>
  JSON.parse(await out("key", "--json", ...args)) as { vkey: string; former_vkeys: string[] };

/** How many of these keys signed the checkpoint. */
async function signatures(note: string, ...vkeys: string[]): Promise<number> {
  const known = vkeys.map((vkey) => parseVerifierKey(sha256, vkey));
  const signers = await signersOf(
    parseSignedCheckpoint(note).note,
    known,
    (publicKey, message, signature) => {
      const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), publicKey]);
      return verify(null, message, createPublicKey({ key: der, format: "der", type: "spki" }), signature);
    },
  );
  return signers.length;
}

/** The ledger's entries about changed keys. */
async function rotations() {
  const text = await out("export", "--format", "json", "--output", "-", "--action", "ledger.rotate_key");
  const entries = JSON.parse(text) as { actor: string; code: string | null; detail: object | null }[];
  return (
    entries
      // The call that requests the rotation has an entry too, without the keys.
      .filter(({ detail }) => detail !== null)
      .map(({ actor, code, detail }) => ({ actor: actor.replace(/:.*/, ":…"), code, detail }))
  );
}

describe.each([
  ["with a running server", true],
  ["with no server", false],
])("%s", (_, isRunning) => {
  beforeEach(async () => {
    if (isRunning) await desk.serve();
  });

  test("checkpoint prints the note unchanged, signed by the key that `key` prints", async () => {
    const vkey = (await out("key")).trimEnd();
    const note = await out("checkpoint");
    expect(await keys()).toEqual({ vkey, former_vkeys: [] });
    const { checkpoint } = parseSignedCheckpoint(note);
    expect(vkey).toStartWith(`${checkpoint.origin}+`);
    expect(checkpoint.origin).toMatch(/^gatehouse\/[0-9a-f]{16}\/default$/);
    expect(await signatures(note, vkey)).toBe(1);

    expect(await out("checkpoint", "--output", "kept.txt")).toBe("");
    const kept = parseSignedCheckpoint(readFileSync(join(desk.cwd, "kept.txt"), "utf8")).checkpoint;
    // The call that requested the first checkpoint is included in the second.
    expect(kept.size).toBeGreaterThan(checkpoint.size);
    const json = JSON.parse(await out("checkpoint", "--json"));
    const { size, root } = parseSignedCheckpoint(json.checkpoint).checkpoint;
    expect(json).toEqual({
      origin: checkpoint.origin,
      size,
      root: root.toBase64(),
      checkpoint: expect.any(String),
    });
  });

  test("each workspace has its own origin, and no other workspace's checkpoint is valid for it", async () => {
    await desk.out(["workspace", "create", "other"]);
    const { vkey } = await keys("--workspace", "other");
    expect(vkey).toContain("/other+");
    expect(await signatures(await out("checkpoint", "--workspace", "other"), vkey)).toBe(1);
    expect(await signatures(await out("checkpoint"), vkey)).toBe(0);
  });

  test("rotate-key activates a new key and lists the old one as former", async () => {
    const before = await keys();
    const vkey = (await out("rotate-key")).trimEnd();
    expect(vkey).not.toBe(before.vkey);
    expect(await keys()).toEqual({ vkey, former_vkeys: [before.vkey] });
    const again = JSON.parse(await out("rotate-key", "--json"));
    expect(again.former_vkeys).toEqual([before.vkey, vkey]);
    const note = await out("checkpoint");
    expect([await signatures(note, before.vkey, vkey), await signatures(note, again.vkey)]).toEqual([0, 1]);
    expect(await rotations()).toEqual([
      { actor: "user:…", code: null, detail: { from: before.vkey, to: vkey } },
      { actor: "user:…", code: null, detail: { from: vkey, to: again.vkey } },
    ]);
  });

  test("rotate-key --lost is refused if no key is lost, and changes nothing", async () => {
    const before = await keys();
    const ran = await desk.cli(["ledger", "rotate-key", "--lost"]);
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 1, stdout: "" });
    expect(ran.stderr).toContain(isRunning ? "another process is using" : "the signing key is not lost");
    expect(await keys()).toEqual(before);
    expect(await rotations()).toEqual([]);
  });
});

test("a lost key stops every command except rotate-key --lost, which is recorded", async () => {
  const before = await keys();
  rmSync(keyFile());
  for (const verb of [
    ["ledger", "key"],
    ["ledger", "rotate-key"],
    ["token", "list"],
  ]) {
    const ran = await desk.cli(verb);
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 1, stdout: "" });
    expect(ran.stderr).toContain("gatehouse ledger rotate-key --lost");
  }
  expect(readdirSync(join(desk.cwd, "gatehouse-data"))).not.toContain("ledger.key");

  const vkey = (await out("rotate-key", "--lost")).trimEnd();
  expect(await keys()).toEqual({ vkey, former_vkeys: [before.vkey] });
  expect(await rotations()).toEqual([
    { actor: "system", code: "key_lost", detail: { from: before.vkey, to: vkey } },
  ]);
  const server = await desk.serve();
  expect(await signatures(await out("checkpoint"), vkey)).toBe(1);
  expect(await server.end("SIGTERM")).toBe(0);
});
