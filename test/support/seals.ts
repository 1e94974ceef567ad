import { openSecretKey } from "../../src/store/secret-key.ts";
import type { SealOptions } from "../../src/store/sqlite/open-seals.ts";

/** Seals of stores that tests open without a gateway: each time under the same key. */
export const SEALS: SealOptions = {
  key: openSecretKey({ masterKey: Buffer.alloc(32, 7).toString("hex"), dataDir: "nowhere" }),
};

/** Seals as the gateway of a data directory makes them. */
export function sealsOf(dataDir: string): SealOptions {
  return { key: openSecretKey({ masterKey: undefined, dataDir }) };
}
