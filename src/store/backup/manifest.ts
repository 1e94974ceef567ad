import Type, { type Static } from "typebox";
import { validator } from "../../base/schema.ts";

/** Names the format and its version. A program refuses a version that it does not know. */
export const FORMAT = "gatehouse-backup/1";
export const MANIFEST_NAME = "manifest.json";
/** Maximum size of a manifest in bytes: some 300,000 workspaces. */
export const MANIFEST_LIMIT = 32 * 1024 * 1024;

/** The files of a data directory that a backup may have, in the order in which it has them. */
export const DATABASE_MEMBER = "gatehouse.db.zst";
export const CONFIG_FILE = "gatehouse.yaml";
/** Records that `master_key` has sealed rows. It is empty, and no secret. */
export const MARK_FILE = "master_key.sealed";
/**
 * Secret. Left out of a backup unless the operator asks for them. A replacement is read before the key that it becomes by being
 * renamed: in the other order, a rotation in between would be missed.
 */
export const KEY_FILES = ["ledger.key.next", "ledger.key", "secrets.key", "webhook.key"] as const;
export const MEMBERS: readonly string[] = [DATABASE_MEMBER, CONFIG_FILE, MARK_FILE, ...KEY_FILES];

const Sha256 = Type.String({ pattern: "^[0-9a-f]{64}$" });
const Count = Type.Integer({ minimum: 0 });

export const Manifest = Type.Object({
  format: Type.Literal(FORMAT),
  /** When the copy of the database was begun: RFC 3339, UTC. */
  created_at: Type.String({ maxLength: 40 }),
  /** The program that made the backup. */
  program: Type.Object({
    version: Type.String({ maxLength: 100 }),
    commit: Type.Union([Type.String({ maxLength: 100 }), Type.Null()]),
  }),
  /** The unpacked database: its size in bytes, its digest, and the number of its schema. */
  database: Type.Object({ bytes: Count, sha256: Sha256, schema: Count }),
  ledgers: Type.Array(Type.Object({ workspace: Type.String(), entries: Count })),
  /** The key files that the data directory had, and whether they are among the files of the backup. */
  keys: Type.Array(Type.Enum(KEY_FILES)),
  with_keys: Type.Boolean(),
  /** All other files of the archive, in its order, with their sizes in bytes and digests as they are in it. */
  files: Type.Array(Type.Object({ name: Type.String(), bytes: Count, sha256: Sha256 })),
});

export type Manifest = Static<typeof Manifest>;

export const manifestValidator = validator(Manifest);
