import type { Bus } from "../../nodes/bus.ts";
import type { SpaceLocks } from "./space-locks.ts";

export const SPACES_CHANGED = "vault.spaces";

/**
 * Locks of the whole table, which has a handful of rows: a lock of its rows would not notice a new one. Waiting for it
 * is fair, so documents that are written all the time cannot keep a space from being changed.
 */
export function sharedSpaceLocks(bus: Pick<Bus, "send">): SpaceLocks {
  return {
    areShared: true,
    toChange: (tx) => tx.write("LOCK TABLE vault_spaces IN EXCLUSIVE MODE"),
    toRead: (tx) => tx.write("LOCK TABLE vault_spaces IN ROW SHARE MODE"),
    changed: () => bus.send(SPACES_CHANGED, {}),
  };
}
