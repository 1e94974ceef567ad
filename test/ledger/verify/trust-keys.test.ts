/** What is trusted of keys that were rotated, lost or smuggled in. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseSignedCheckpoint } from "../../../src/ledger/proof/checkpoint.ts";
import { formatNote } from "../../../src/ledger/proof/note.ts";
import { startGateway, type TestGateway, type TestGatewayOptions } from "../../support/gateway.ts";
import { tempDir } from "../../support/process.ts";
import { STRANGER } from "./attack.ts";
import { allFindings, inShort, verify } from "./scene.ts";
import { keyOf, publicKeyOf } from "./trust-support.ts";
import { type Row, signAs, Vandal } from "./vandal.ts";

setDefaultTimeout(60_000);

describe("keys that change:", () => {
  let directory: ReturnType<typeof tempDir>;
  let path: string;

  beforeEach(() => {
    directory = tempDir();
    path = join(directory.path, "gatehouse.db");
  });

  afterEach(() => directory.remove());

  /** Runs a gateway on the directory and returns its key at the end. */
  async function within(work: (gateway: TestGateway) => Promise<unknown>, options: TestGatewayOptions = {}) {
    const gateway = await startGateway({ dataDir: directory.path, ...options });
    await work(gateway);
    const key = (await gateway.call("GET", "/v1/ledger/key")).body.vkey as string;
    await gateway.stop();
    return key;
  }

  const read = (gateway: TestGateway) => gateway.call("GET", "/v1/agents");

  async function rotate(gateway: TestGateway): Promise<void> {
    const answer = await gateway.call("POST", "/operator/ledger/rotate-key", {
      token: gateway.gateway.operatorSecret,
      headers: { "gatehouse-operator": "tests" },
    });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  }

  test("one that handed over vouches for the next, also in workspaces created later", async () => {
    const first = await within(read);
    const second = await within(async (gateway) => {
      await rotate(gateway);
      await gateway.workspace("late");
    });
    const third = await within(rotate);
    expect(new Set([first, second, third]).size).toBe(3);
    for (const key of [undefined, first, second, third]) {
      const result = await verify(path, key === undefined ? {} : { key });
      expect({ key, findings: allFindings(result) }).toEqual({ key, findings: [] });
      expect(result.ledgers).toHaveLength(2);
    }
  });

  test("ten of them in succession hold", async () => {
    await within(async (gateway) => {
      for (let count = 0; count < 10; count++) await rotate(gateway);
    });
    expect(allFindings(await verify(path))).toEqual([]);
  });

  test("one that was lost vouches for nothing, and the next has to be supplied", async () => {
    const first = await within(read);
    rmSync(join(directory.path, "ledger.key"));
    const second = await within(read, { replaceLostLedgerKey: true });
    for (const brought of [{}, { key: first }]) {
      const result = await verify(path, brought);
      expect(result.verdict).toBe("undecided");
      expect(inShort(allFindings(result))).toEqual([
        expect.stringMatching(/^key_lost \d+$/),
        expect.stringMatching(/^key_unvouched/),
      ]);
    }
    const result = await verify(path, { key: second });
    expect(result.verdict).toBe("undecided");
    expect(allFindings(result)).toMatchObject([
      { code: "key_lost", message: expect.stringContaining("The chain of trust is broken there") },
    ]);
  });

  test("one that was lost is bridged by a checkpoint from elsewhere that reaches as far, and by no shorter one", async () => {
    const checkpointOf = async (gateway: TestGateway) =>
      String((await gateway.call("GET", "/v1/ledger/checkpoint")).body);
    let [shorter, longer] = ["", ""];
    await within(async (gateway) => {
      shorter = await checkpointOf(gateway);
      await read(gateway);
    });
    rmSync(join(directory.path, "ledger.key"));
    const key = await within(
      async (gateway) => {
        longer = await checkpointOf(gateway);
      },
      { replaceLostLedgerKey: true },
    );
    const found = async (checkpoints: string) =>
      inShort(allFindings(await verify(path, { key, checkpoints })));
    expect(await found(shorter)).toEqual([expect.stringMatching(/^key_lost/)]);
    expect(await found(longer)).toEqual([]);
  });

  test("one that is inserted before the ledger's own is not believed alongside checkpoints that were kept", async () => {
    let kept = "";
    const key = await within(async (gateway) => {
      await read(gateway);
      kept = (await gateway.call("GET", "/v1/ledger/checkpoint")).body;
      for (let count = 0; count < 5; count++) await read(gateway);
    });
    expect((await verify(path, { checkpoints: kept })).verdict).toBe("holds");
    const { checkpoint } = parseSignedCheckpoint(kept);
    const { origin } = checkpoint;
    const vandal = new Vandal({ dataDir: directory.path, path, remove: () => {} });
    vandal.unguarded(() => {
      // An invented end, signed with the attacker's own key, which the directory now lists as the older one.
      const last = vandal.rows().length;
      vandal.set(last, { bytes: vandal.forged(last) });
      vandal.rechain(last);
      vandal.append(handOver(vandal.row(last), keyOf(origin), key));
      vandal.run("UPDATE ledger_keys SET public_key = ?, retired_at = 1", STRANGER.publicKey);
      vandal.run("INSERT INTO ledger_keys (public_key, created_at) VALUES (?, 0)", publicKeyOf(key));
      vandal.removeCheckpoints(checkpoint.size);
      vandal.run(
        "INSERT INTO ledger_checkpoints VALUES (1, ?, ?, 0)",
        last + 1,
        vandal.noteBy(signAs(STRANGER), last + 1),
      );
      vandal.signHead(signAs(STRANGER));
    });
    vandal.close();
    // Nothing in the directory contradicts it.
    expect(allFindings(await verify(path))).toEqual([]);
    const result = await verify(path, { checkpoints: kept });
    expect([result.verdict, inShort(allFindings(result))]).toEqual([
      "undecided",
      [`key_unvouched ${checkpoint.size + 1}`],
    ]);
  });

  test("one that was slipped in is not believed, even if it signs alongside the old one", async () => {
    const key = await within(read);
    const vandal = new Vandal({ dataDir: directory.path, path, remove: () => {} });
    const origin = key.split("+")[0] ?? "";
    vandal.unguarded(() => {
      const { size, note } = vandal.database
        .query<{ size: number; note: string }, []>(
          "SELECT size, note FROM ledger_checkpoints ORDER BY size DESC LIMIT 1",
        )
        .get() ?? { size: 0, note: "" };
      const { text, signatures } = parseSignedCheckpoint(note).note;
      const both = formatNote({ text, signatures: [...signatures, signAs(STRANGER)(origin, text)] });
      vandal.run("UPDATE ledger_checkpoints SET note = ? WHERE size = ?", both, size);
      vandal.run("INSERT INTO ledger_keys (public_key, created_at) VALUES (?, 0)", STRANGER.publicKey);
      // A different, well-formed entry that only the new key vouches for.
      const last = vandal.row(size);
      const bytes = vandal
        .forged(size)
        .replace(`"seq":${size}`, `"seq":${size + 1}`)
        .replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${Buffer.from(last.leaf).toString("hex")}"`);
      vandal.append(bytes);
      vandal.run(
        "INSERT INTO ledger_checkpoints VALUES (1, ?, ?, 0)",
        size + 1,
        vandal.noteBy(signAs(STRANGER), size + 1),
      );
    });
    const size = vandal.rows().length;
    vandal.close();
    for (const brought of [{}, { key }]) {
      const result = await verify(path, brought);
      expect([result.verdict, inShort(allFindings(result))]).toEqual([
        "tampered",
        [
          "key_changed",
          "key_changed",
          `tail_unsigned ${size}`,
          "checkpoint_surplus",
          `key_unvouched ${size}`,
        ],
      ]);
    }
  });
});

/** An entry after another one by which one key replaces another. */
function handOver(before: Row, from: string, to: string): string {
  const { seq, ts } = JSON.parse(before.bytes);
  return JSON.stringify({
    action: "ledger.rotate_key",
    actor: "user:operator",
    channel: "rest",
    detail: { from, to },
    outcome: "succeeded",
    phase: "single",
    prev: Buffer.from(before.leaf).toString("hex"),
    seq: seq + 1,
    ts,
  });
}
