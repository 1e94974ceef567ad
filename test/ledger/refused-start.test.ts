/** A start refuses everything that the key has not signed, and signs nothing itself. */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../src/base/errors.ts";
import { encodeEntry } from "../../src/ledger/entry.ts";
import { startGateway } from "../support/gateway.ts";
import { WITHOUT_CLIENTS_CALLS } from "../support/older-schema.ts";
import { run } from "../support/process.ts";
import { BEFORE_HEADS, draft } from "./support.ts";
import { STRANGER } from "./verify/attack.ts";
import { type Copy, verify, withCopies } from "./verify/scene.ts";
import { signAs, Vandal } from "./verify/vandal.ts";

setDefaultTimeout(60_000);

const TABLES = ["ledger", "ledger_heads", "ledger_node_heads", "ledger_checkpoints", "ledger_keys"];

/** Tables with a workspace's evidence, apart from its head. */
const TABLES_OF_LEDGER = ["ledger", "ledger_tiles", "ledger_index", "ledger_checkpoints", "payloads"];

function contentOf(path: string): unknown[] {
  const database = new Database(path, { readonly: true });
  const found = TABLES.flatMap((table) =>
    database.query("SELECT 1 FROM sqlite_schema WHERE name = ?").get(table) === null
      ? []
      : database.query(`SELECT * FROM ${table} ORDER BY 1, 2`).all(),
  );
  database.close();
  return found;
}

/** Appends a chained approval, in the form in which the program writes one. */
function appendForged(v: Vandal, workspace = 1): void {
  const last = v.rows(workspace).at(-1);
  const { ts } = JSON.parse(last?.bytes ?? "{}") as { ts: string };
  const prev = Buffer.from(last?.leaf ?? new Uint8Array(32)).toString("hex");
  const approval = draft({ action: "oversight.approve", oversight: { person: "Ada", decision: "approve" } });
  v.append(encodeEntry(approval, { seq: (last?.seq ?? 0) + 1, prev, ts }), workspace);
}

describe("a start refuses", () => {
  let copy: Copy;

  withCopies((made) => {
    copy = made;
  });

  const cut = (v: Vandal, size: number) => {
    v.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq > ?", size);
    v.removeCheckpoints(size);
    v.run(
      "DELETE FROM ledger_tiles WHERE workspace_id = 1 AND level = 0 AND tile >= ?",
      Math.floor(size / 256),
    );
  };

  const ATTACKS: readonly (readonly [string, (v: Vandal) => void | Promise<void>, RegExp])[] = [
    ["a forged entry after the last one", appendForged, /"default" ends with an unsigned tail: entry \d+ /],
    ["one in another workspace", (v) => appendForged(v, 2), /"other" ends with an unsigned tail/],
    [
      "several",
      (v) => {
        appendForged(v);
        appendForged(v);
      },
      /unsigned tail: entries \d+ to \d+ /,
    ],
    [
      "one that a stranger's checkpoint covers",
      (v) => {
        appendForged(v);
        const size = v.rows().length;
        v.run("INSERT INTO ledger_checkpoints VALUES (1, ?, ?, 0)", size, v.noteBy(signAs(STRANGER), size));
      },
      /unsigned tail/,
    ],
    [
      "one that a stranger's head covers",
      (v) => {
        appendForged(v);
        v.signHead(signAs(STRANGER));
      },
      /the head of all ledgers is not signed with/,
    ],
    [
      "one, and the head is gone",
      (v) => {
        appendForged(v);
        v.run("DELETE FROM ledger_heads WHERE workspace_id = 1");
      },
      /"default" has no signed head/,
    ],
    [
      "one, and all heads are gone",
      (v) => {
        appendForged(v);
        v.run("DELETE FROM ledger_heads");
        v.run("DELETE FROM ledger_node_heads");
        v.run("INSERT INTO meta (key, value) VALUES ('ledger_heads', 'unsigned')");
      },
      /the signed head of the ledgers is missing, although the key/,
    ],
    [
      "one, and the database claims to be older than heads",
      (v) => {
        appendForged(v);
        v.run("DROP TABLE ledger_heads");
        v.run("DROP TABLE ledger_node_heads");
        // Later additions are dropped as well, so that their migrations run again.
        for (const statement of WITHOUT_CLIENTS_CALLS) v.run(statement);
        v.run("ALTER TABLE approvals DROP COLUMN definition_hash");
        v.run("ALTER TABLE approvals DROP COLUMN first_seq");
        v.run("ALTER TABLE schedules DROP COLUMN agent_id");
        v.run(`PRAGMA user_version = ${BEFORE_HEADS}`);
      },
      /the signed head of the ledgers is missing, although the key|cannot be opened|differs from the one that Gatehouse created/,
    ],
    [
      "one, and the keys are gone, as in a directory that nobody has started on",
      (v) => {
        appendForged(v);
        v.run("DELETE FROM ledger_heads");
        v.run("DELETE FROM ledger_node_heads");
        v.run("DELETE FROM ledger_keys");
      },
      /the signed head of the ledgers is missing, although the key/,
    ],
    [
      "the last entry rebuilt",
      (v) =>
        v.unguarded(() => {
          v.set(v.rows().length, { bytes: v.forged(v.rows().length) });
          v.rechain(v.rows().length);
        }),
      /entries are not those that were signed/,
    ],
    [
      "the last entry's bytes changed, from which the next one takes its time",
      (v) =>
        v.unguarded(() => {
          const { seq, bytes } = v.row(v.rows().length);
          v.set(seq, { bytes: bytes.replace(/"ts":"2/, '"ts":"9') });
        }),
      /has an entry \d+ that is not the one that was signed/,
    ],
    [
      "a ledger rebuilt from the middle, with its tiles",
      async (v) => {
        v.unguarded(() => {
          v.set(100, { bytes: v.forged(100) });
          v.rechain(100);
          v.removeCheckpoints();
        });
        await v.rebuild();
      },
      /entries are not those that were signed/,
    ],
    [
      "a ledger that was cut",
      (v) => v.unguarded(() => cut(v, v.checkpointAt(500))),
      /has \d+ entries, but \d+ were signed/,
    ],
    [
      "one that was cut to an older checkpoint, which replaces the head",
      (v) => {
        const size = v.checkpointAt(500);
        v.setHead(v.checkpoint(size));
        v.unguarded(() => cut(v, size));
      },
      /an invalid head/,
    ],
    [
      "a workspace without entries that had some",
      (v) =>
        v.unguarded(() => {
          for (const table of [...TABLES_OF_LEDGER, "ledger_heads"])
            v.run(`DELETE FROM ${table} WHERE workspace_id = 2`);
        }),
      /"other" has no signed head/,
    ],
    [
      "a former key that was slipped in, which the server would name to its clients",
      (v) => v.run("INSERT INTO ledger_keys VALUES (0, ?, 0, 1)", STRANGER.publicKey),
      /was signed when different keys were stored/,
    ],
    ["the head of another workspace", (v) => v.setHead(v.head(2)), /"default" has the head of gatehouse/],
    [
      "one, and its head is made to match",
      (v) => {
        appendForged(v);
        v.makeHead();
      },
      /are not those that were signed together/,
    ],
    [
      "one, and the heads are notes of an earlier version, each signed separately",
      (v) => {
        // Anyone with a copy of the database from before heads were signed together has such notes.
        v.signSingly(v.stolenKey());
        v.run("DELETE FROM ledger_node_heads");
        appendForged(v);
      },
      /the signed head of the ledgers is missing, although the key/,
    ],
    [
      "a workspace that was removed, with everything except its head",
      (v) =>
        v.unguarded(() => {
          v.run("PRAGMA foreign_keys = OFF");
          for (const table of TABLES_OF_LEDGER) v.run(`DELETE FROM ${table} WHERE workspace_id = 2`);
          v.run("DELETE FROM workspaces WHERE id = 2");
        }),
      /2 heads of ledgers are stored for 1 workspaces/,
    ],
    [
      "a workspace that was removed, with its head",
      (v) =>
        v.unguarded(() => {
          v.run("PRAGMA foreign_keys = OFF");
          for (const table of [...TABLES_OF_LEDGER, "ledger_heads"])
            v.run(`DELETE FROM ${table} WHERE workspace_id = 2`);
          v.run("DELETE FROM workspaces WHERE id = 2");
        }),
      /are not those that were signed together/,
    ],
    [
      "two workspaces that are swapped, with their names and everything else",
      (v) =>
        v.unguarded(() => {
          v.run("PRAGMA foreign_keys = OFF");
          for (const [from, to] of [
            [1, 3],
            [2, 1],
            [3, 2],
          ] as const) {
            v.run("UPDATE workspaces SET id = ? WHERE id = ?", to, from);
            for (const table of [...TABLES_OF_LEDGER, "ledger_heads"])
              v.run(`UPDATE ${table} SET workspace_id = ? WHERE workspace_id = ?`, to, from);
          }
        }),
      /has the head of .*, workspace \d/,
    ],
    [
      "a checkpoint that was dropped",
      (v) =>
        v.unguarded(() =>
          v.run("DELETE FROM ledger_checkpoints WHERE workspace_id = 1 AND size = ?", v.checkpointAt(200)),
        ),
      /has \d+ checkpoints, but \d+ were signed: checkpoints were removed/,
    ],
    [
      "an entry far after the last one, beyond exact numbers",
      (v) =>
        v.unguarded(() =>
          v.run(
            "INSERT INTO ledger SELECT workspace_id, 9007199254740993, prev, leaf, bytes FROM ledger WHERE workspace_id = 1 AND seq = 1",
          ),
        ),
      /unsigned tail: entries after entry \d+ were added/,
    ],
    [
      "the keys' rows removed, which the key file could bring back",
      (v) => v.run("DELETE FROM ledger_keys"),
      /the rows of `ledger_keys` were removed/,
    ],
    [
      "a stranger's key put in force, and a ledger signed with it",
      (v) => {
        appendForged(v);
        v.run("UPDATE ledger_keys SET retired_at = 0");
        v.run("INSERT INTO ledger_keys (public_key, created_at) VALUES (?, 0)", STRANGER.publicKey);
        v.signHead(signAs(STRANGER));
      },
      /somebody has changed the database's keys/,
    ],
  ];

  test.each(ATTACKS)("%s", async (_, attack, message) => {
    const vandal = new Vandal(copy);
    await attack(vandal);
    vandal.close();
    const before = contentOf(copy.path);
    const failed = await startGateway({ dataDir: copy.dataDir }).then(
      async (gateway) => {
        await gateway.stop();
        return "it started";
      },
      (error: unknown) => error,
    );
    expect(failed).toBeInstanceOf(OperatorError);
    expect(failed).toMatchObject({ exitCode: 1, message: expect.stringMatching(message) });
    const after = contentOf(copy.path);
    // In these cases the repeated migration has created its table, and the keys that the first start stored are not a
    // signature.
    if (!message.source.includes("is missing, although")) expect(after).toEqual(before);
    expect((await verify(copy.path)).verdict).not.toBe("holds");
  });

  test("as a process: exit code 1, with what is wrong and what to do on standard error", async () => {
    const vandal = new Vandal(copy);
    appendForged(vandal);
    vandal.close();
    const { code, stderr } = await run(["serve", "--data", copy.dataDir, "--listen", "127.0.0.1:0"], {
      cwd: copy.dataDir,
    });
    expect(code).toBe(1);
    expect(stderr).toContain("unsigned tail");
    expect(stderr).toContain("gatehouse ledger verify");
    expect(stderr).not.toContain("    at ");
  });

  test("to replace a key that is not lost, after somebody has put their own in force and signed forged entries", async () => {
    const vandal = new Vandal(copy);
    appendForged(vandal);
    vandal.run("UPDATE ledger_keys SET retired_at = 0");
    vandal.run("INSERT INTO ledger_keys (public_key, created_at) VALUES (?, 0)", STRANGER.publicKey);
    vandal.signHead(signAs(STRANGER));
    vandal.close();
    const before = contentOf(copy.path);
    const key = readFileSync(join(copy.dataDir, "ledger.key"), "utf8");
    for (const command of [
      ["serve", "--data", copy.dataDir, "--listen", "127.0.0.1:0"],
      ["ledger", "rotate-key", "--lost", "--data", copy.dataDir],
    ]) {
      const { code, stdout, stderr } = await run(command, { cwd: copy.dataDir });
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toContain("somebody has changed the database's keys");
      expect(stderr).not.toContain("--lost");
    }
    expect(contentOf(copy.path)).toEqual(before);
    expect(readFileSync(join(copy.dataDir, "ledger.key"), "utf8")).toBe(key);
  });

  test("to replace a lost key if somebody has continued a ledger", async () => {
    const vandal = new Vandal(copy);
    appendForged(vandal);
    vandal.close();
    rmSync(join(copy.dataDir, "ledger.key"));
    const starting = startGateway({ dataDir: copy.dataDir, replaceLostLedgerKey: true });
    await expect(starting).rejects.toThrow(/unsigned tail/);
  });
});
