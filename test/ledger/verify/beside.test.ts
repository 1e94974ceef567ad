/**
 * Attacks on what is stored next to the entries. Each is carried out on a copy of a data directory that a real
 * gateway wrote, and must be identified. The findings must be exactly these, so no attack is buried under its
 * consequences.
 */
import { describe, setDefaultTimeout } from "bun:test";
import { type Detail, encodeEntry } from "../../../src/ledger/entry.ts";
import { draft } from "../support.ts";
import {
  FIRST_PROMPT,
  HOLDS,
  INSIDE,
  last,
  NEXT,
  RECORD,
  SECOND_PROMPT,
  STRANGER,
  tampered,
  testAttacks,
} from "./attack.ts";
import { signAs, type Vandal } from "./vandal.ts";

setDefaultTimeout(60_000);

/** A well-formed entry that claims an erasure, to be appended after the last one. */
function erasureAfter(v: Vandal, detail: Detail): string {
  const before = v.row(last(v));
  const { ts } = JSON.parse(before.bytes) as { ts: string };
  const at = { seq: before.seq + 1, prev: Buffer.from(before.leaf).toString("hex"), ts };
  return encodeEntry(draft({ action: "payload.erase", outcome: "succeeded", detail }), at);
}

describe("tiles and index:", () => {
  testAttacks([
    {
      name: "a tile is changed",
      attack: (v) => v.editTile(0, 1, INSIDE - 257),
      alone: tampered(`tile_changed ${INSIDE}`),
    },
    {
      name: "a tile of the level above is changed",
      attack: (v) => v.editTile(1, 0, 1),
      alone: tampered("tile_changed 257"),
    },
    {
      name: "a tile is removed",
      attack: (v) => v.run("DELETE FROM ledger_tiles WHERE workspace_id = 1 AND level = 0 AND tile = 1"),
      alone: tampered("tile_missing 257"),
    },
    {
      name: "tiles are added",
      attack: (v) => {
        v.run("INSERT INTO ledger_tiles VALUES (1, 5, 0, x'00')");
        v.run("INSERT INTO ledger_tiles VALUES (1, 0, 77, x'00')");
      },
      alone: tampered("tile_surplus", "tile_surplus"),
    },
    {
      name: "a tile is cut short",
      attack: (v) =>
        v.run("UPDATE ledger_tiles SET hashes = x'00' WHERE workspace_id = 1 AND level = 0 AND tile = 1"),
      alone: tampered("tile_changed 257"),
    },
    {
      name: "bits of the index are cleared, so that a filter leaves entries out",
      attack: (v) =>
        v.run(
          "UPDATE ledger_index SET bits = zeroblob(32) WHERE workspace_id = 1 AND key = 'action:task.dispatch' AND block = 0",
        ),
      alone: tampered(`index_changed ${FIRST_PROMPT}`),
    },
    {
      name: "a row of the index is removed, so that a filter leaves entries out",
      attack: (v) =>
        v.run(
          "DELETE FROM ledger_index WHERE workspace_id = 1 AND key = 'action:task.dispatch' AND block = 0",
        ),
      alone: tampered(`index_missing ${FIRST_PROMPT}`),
    },
    {
      name: "rows of the index are added",
      attack: (v) => {
        v.run("INSERT INTO ledger_index VALUES (1, 'actor:nobody', 0, zeroblob(32))");
        v.run("INSERT INTO ledger_index VALUES (1, 'agent:helper', 9, zeroblob(32))");
      },
      alone: tampered("index_surplus", "index_surplus"),
    },
    {
      name: "a row of the index is moved to another key",
      attack: (v) =>
        v.run(
          "UPDATE ledger_index SET key = 'action:nothing' WHERE workspace_id = 1 AND key = 'action:task.dispatch' AND block = 0",
        ),
      alone: tampered(`index_missing ${FIRST_PROMPT}`, "index_surplus"),
    },
  ]);
});

describe("texts:", () => {
  testAttacks([
    {
      name: "a prompt is changed",
      attack: (v) => v.run("UPDATE payloads SET body = 'And then?' WHERE body = 'And now?'"),
      alone: tampered(`payload_changed ${SECOND_PROMPT}`),
    },
    {
      name: "the salt of a prompt is changed",
      attack: (v) => v.run("UPDATE payloads SET salt = zeroblob(16) WHERE body = 'And now?'"),
      alone: tampered(`payload_changed ${SECOND_PROMPT}`),
    },
    {
      name: "a prompt's first letters are moved into the salt, so that their hash stays",
      attack: (v) =>
        v.run(
          "UPDATE payloads SET salt = CAST(salt || 'And ' AS BLOB), body = 'now?' WHERE body = 'And now?'",
        ),
      alone: tampered(`payload_changed ${SECOND_PROMPT}`),
    },
    {
      name: "a prompt is removed without a record",
      attack: (v) => v.run("DELETE FROM payloads WHERE body = 'And now?'"),
      alone: tampered(`payload_missing ${SECOND_PROMPT}`),
    },
    {
      name: "texts are added: to an entry without any, of an unknown kind, to no entry",
      attack: (v) => {
        v.run(
          "INSERT INTO payloads (workspace_id, seq, kind, salt, body, created_at) VALUES (1, 100, 'input', zeroblob(16), 'made up', 0)",
        );
        v.run(
          "INSERT INTO payloads (workspace_id, seq, kind, salt, body, created_at) VALUES (1, ?, 'thought', zeroblob(16), 'made up', 0)",
          v.seqsOf("task.dispatch", "intent")[1] ?? 0,
        );
        v.run(
          "INSERT INTO payloads (workspace_id, seq, kind, salt, body, created_at) VALUES (1, 9999, 'input', zeroblob(16), 'made up', 0)",
        );
      },
      alone: tampered("payload_surplus 100", `payload_surplus ${SECOND_PROMPT}`, "payload_surplus 9999"),
    },
    {
      name: "a text that was erased by a record is restored",
      attack: (v) =>
        v.run(
          "INSERT INTO payloads (workspace_id, seq, kind, salt, body, created_at) VALUES (1, ?, 'input', zeroblob(16), 'What time is it?', 0)",
          v.seqsOf("task.dispatch", "intent")[0] ?? 0,
        ),
      alone: tampered(`payload_changed ${FIRST_PROMPT}`, `payload_surplus ${FIRST_PROMPT}`),
    },
    {
      name: "the record of an erasure is changed",
      attack: (v) =>
        v.unguarded(() => {
          const [record = 0] = v.seqsOf("payload.erase", "single");
          v.set(record, { bytes: v.row(record).bytes.replace(".input ", ".output ") });
        }),
      alone: tampered(`entry_changed ${RECORD}`, "payload_unaccounted"),
    },
    {
      name: "a prompt is removed, and a run that would erase it for its age is forged",
      attack: (v) => {
        v.run("DELETE FROM payloads WHERE body = 'And now?'");
        v.run(
          "INSERT INTO meta (key, value) VALUES ('payload_expiry:1', ?)",
          JSON.stringify({ done: 0, run: { upTo: 600, days: 1, payloads: 1 } }),
        );
      },
      alone: tampered("expiry_changed", `payload_missing ${SECOND_PROMPT}`),
    },
    ...[
      { upTo: 9_999, days: 1, payloads: 1 },
      { upTo: 600, days: 0, payloads: 1 },
      { upTo: 1e300, days: 1, payloads: 1 },
      { upTo: "600", days: 1, payloads: 1 },
      { days: 1 },
      [],
      "600",
    ].map((run) => ({
      name: `a run is made up that no server could have noted: ${JSON.stringify(run)}`,
      attack: (v: Vandal) =>
        v.run(
          "INSERT INTO meta (key, value) VALUES ('payload_expiry:1', ?)",
          JSON.stringify({ done: 0, run }),
        ),
      alone: tampered("expiry_changed"),
    })),
    {
      name: "a note of runs is forged that is not JSON",
      attack: (v) => v.run("INSERT INTO meta (key, value) VALUES ('payload_expiry:1', '{')"),
      alone: tampered("expiry_changed"),
    },
    {
      name: "a prompt is removed, and a record that names it is added after the last checkpoint",
      attack: (v) => {
        const [seq = 0] = v.seqsOf("task.dispatch", "intent").slice(1);
        v.run("DELETE FROM payloads WHERE body = 'And now?'");
        v.append(erasureAfter(v, { payloads: `${seq}.input`, reason: "requested", target_seq: seq }));
      },
      alone: tampered(`tail_unsigned ${NEXT}`),
    },
    {
      name: "a prompt is removed, and a record of an early version is added after the last checkpoint",
      attack: (v) => {
        v.run("DELETE FROM payloads WHERE body = 'And now?'");
        v.append(erasureAfter(v, { payloads: 1 }));
      },
      alone: tampered(`tail_unsigned ${NEXT}`, `payload_missing ${SECOND_PROMPT}`),
    },
  ]);
});

describe("checkpoints and keys:", () => {
  testAttacks([
    {
      name: "a stored checkpoint is replaced by one of another key",
      attack: (v) =>
        v.unguarded(() => {
          v.run(
            "UPDATE ledger_checkpoints SET note = ? WHERE workspace_id = 1 AND size = ?",
            v.noteBy(signAs(STRANGER), v.checkpointAt(300)),
            v.checkpointAt(300),
          );
        }),
      alone: tampered("checkpoint_of_another_key 300"),
    },
    {
      name: "a stored checkpoint gets the signature of another key as well",
      attack: (v) =>
        v.unguarded(() => {
          const stranger = v.noteBy(signAs(STRANGER), v.checkpointAt(300)).split("\n").at(-2) ?? "";
          v.run(
            "UPDATE ledger_checkpoints SET note = note || ? WHERE workspace_id = 1 AND size = ?",
            `${stranger}\n`,
            v.checkpointAt(300),
          );
        }),
      alone: tampered("checkpoint_of_another_key 300"),
    },
    {
      name: "a letter of a stored checkpoint is changed",
      attack: (v) =>
        v.unguarded(() =>
          v.run(
            "UPDATE ledger_checkpoints SET note = replace(note, char(10) || size, char(10) || (size - 1)) WHERE workspace_id = 1 AND size = ?",
            v.checkpointAt(300),
          ),
        ),
      alone: tampered("checkpoint_changed 300"),
    },
    {
      name: "a stored checkpoint is moved to another size",
      attack: (v) =>
        v.unguarded(() =>
          v.run(
            "UPDATE ledger_checkpoints SET size = size - 1 WHERE workspace_id = 1 AND size = ?",
            v.checkpointAt(300),
          ),
        ),
      alone: tampered("checkpoint_changed 299"),
    },
    {
      name: "a stored checkpoint is replaced by a text that is not one",
      attack: (v) =>
        v.unguarded(() =>
          v.run(
            "UPDATE ledger_checkpoints SET note = '' WHERE workspace_id = 1 AND size = ?",
            v.checkpointAt(300),
          ),
        ),
      alone: tampered("checkpoint_changed 300"),
    },
    {
      name: "a stored checkpoint is replaced by one of the other workspace",
      attack: (v) =>
        v.unguarded(() =>
          v.run(
            "UPDATE ledger_checkpoints SET note = (SELECT note FROM ledger_checkpoints WHERE workspace_id = 2 AND size = ?) WHERE workspace_id = 1 AND size = ?",
            v.checkpointAt(100, 2),
            v.checkpointAt(100),
          ),
        ),
      alone: tampered("checkpoint_of_another_ledger 100"),
    },
    {
      name: "a checkpoint is signed with the stolen key over another root",
      attack: (v) =>
        v.unguarded(() => {
          const note = v.noteBy(v.stolenKey(), v.checkpointAt(300), new Uint8Array(32));
          v.run(
            "UPDATE ledger_checkpoints SET note = ? WHERE workspace_id = 1 AND size = ?",
            note,
            v.checkpointAt(300),
          );
        }),
      alone: tampered("checkpoint_differs 300"),
    },
    {
      name: "the keys are replaced, and everything is signed again with another",
      attack: (v) =>
        v.unguarded(() => {
          v.run("UPDATE ledger_keys SET public_key = ?", STRANGER.publicKey);
          v.signAnew(signAs(STRANGER), 1);
          v.signAnew(signAs(STRANGER), 2);
        }),
      alone: HOLDS,
      withCheckpoints: tampered("key_missing"),
    },
    {
      name: "no key is in force",
      attack: (v) => v.run("UPDATE ledger_keys SET retired_at = 5"),
      alone: tampered("key_changed"),
    },
    {
      name: "the number of a key is changed, as if one before it was removed",
      attack: (v) => v.run("UPDATE ledger_keys SET id = 2"),
      alone: tampered("key_changed"),
    },
    {
      name: "a key that no entry names is slipped in",
      attack: (v) => {
        v.run("UPDATE ledger_keys SET retired_at = 5");
        v.run("INSERT INTO ledger_keys (public_key, created_at) VALUES (?, 5)", STRANGER.publicKey);
      },
      alone: tampered("key_changed", "key_changed"),
    },
  ]);
});

describe("workspaces:", () => {
  testAttacks([
    ...["ledger", "ledger_checkpoints", "ledger_tiles", "ledger_index", "payloads"].map((table) => ({
      name: `a row of ${table} belongs to a workspace that does not exist`,
      attack: (v: Vandal) =>
        v.unguarded(() => {
          v.run("PRAGMA foreign_keys = OFF");
          v.copyTo(table, "99");
        }),
      alone: tampered("workspace_missing"),
    })),
    {
      name: "rows belong to workspaces whose numbers are not exact in JavaScript, and to the smallest and largest that exist",
      attack: (v) =>
        v.unguarded(() => {
          v.run("PRAGMA foreign_keys = OFF");
          for (const id of ["9007199254740993", "-9223372036854775808", "9223372036854775807"]) {
            v.copyTo("ledger", id);
          }
        }),
      alone: tampered("workspace_missing", "workspace_missing", "workspace_missing"),
    },
    {
      name: "a workspace is added whose number is not exact in JavaScript",
      attack: (v) =>
        v.database.exec("INSERT INTO workspaces (id, name, created_at) VALUES (9007199254740993, 'far', 0)"),
      alone: tampered("workspace_changed"),
    },
    {
      name: "a workspace and its entries are removed, and what belongs to them stays",
      attack: (v) =>
        v.unguarded(() => {
          v.run("PRAGMA foreign_keys = OFF");
          v.run("DELETE FROM ledger WHERE workspace_id = 2");
          v.run("DELETE FROM workspaces WHERE id = 2");
        }),
      alone: tampered("workspace_missing", "workspace_missing"),
      withCheckpoints: tampered("workspace_missing", "workspace_missing", "workspace_missing"),
    },
  ]);
});
