import type { Migration } from "../migrate.ts";

/** What a single node keeps in files of its data directory. */
export const KEYS: Migration = {
  name: "keys that nodes share",
  sql: `
-- Encrypted under the master key: see store/sealed-keys.ts.
CREATE TABLE sealed_keys (
  purpose TEXT COLLATE "C" PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  sealed BYTEA NOT NULL
);
`,
};
