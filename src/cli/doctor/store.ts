import { OperatorError } from "../../base/errors.ts";
import type { SharedStoreConfig } from "../../config/config.ts";
import { type DatabaseFacts, examine } from "../../store/postgres/examine.ts";
import { NEWEST_VERSION } from "../../store/postgres/upgrade.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

/** Servers take the database's time, so a difference only shows that one of the two clocks is wrong. */
const CLOCK_MS = 5_000;
/** What a server may have open, and some for whoever operates the database. */
const CONNECTIONS = 40;

/** The database that servers share. */
export async function checkStore(
  store: SharedStoreConfig,
  masterKey: string | undefined,
): Promise<Finding[]> {
  const key =
    masterKey === undefined
      ? fail("keys", "master_key is not set", "set GATEHOUSE_MASTER_KEY to the same value on all servers")
      : ok("keys", "master_key is set");
  try {
    return [key, ...storeFindings(await examine(store.directUrl ?? store.url, Date.now))];
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    return [key, fail("store", error.message, error.hint ?? "correct the setting store")];
  }
}

export function storeFindings(facts: DatabaseFacts): Finding[] {
  const { version, schema, clockAheadMs, maxConnections, unsafe, isSuperuser } = facts;
  return [
    schemaFinding(version, schema),
    unsafe.length === 0
      ? ok("durability", "commits are durable")
      : fail(
          "durability",
          `${unsafe.join(", ")} is off, so calls that were answered can be lost`,
          "turn it on",
        ),
    maxConnections >= CONNECTIONS
      ? ok("connections", `max_connections is ${maxConnections}`)
      : warn("connections", `max_connections is ${maxConnections}`, "raise it: see docs/scaling.md"),
    Math.abs(clockAheadMs) <= CLOCK_MS
      ? ok("clock", "this machine's clock agrees with the database's")
      : warn(
          "clock",
          `the database's clock differs from this machine's by ${Math.round(clockAheadMs / 1_000)} s`,
          "set both clocks, for example with an NTP service",
        ),
    isSuperuser
      ? warn(
          "rights",
          "the store's user is a superuser, who can change evidence unnoticed until it is verified",
          "use a user that owns this database only: see docs/scaling.md",
        )
      : ok("rights", "the store's user is not a superuser"),
  ];
}

function schemaFinding(version: string, schema: number): Finding {
  const where = `PostgreSQL ${version}`;
  if (schema === NEWEST_VERSION)
    return ok("store", `${where}; its schema is that of this version, ${schema}`);
  const theirs = `${where}; its schema is ${schema}, that of this version is ${NEWEST_VERSION}`;
  if (schema === 0)
    return warn(
      "store",
      `${where}; the database is empty`,
      "run `gatehouse store migrate`, or start the first server",
    );
  if (schema > NEWEST_VERSION) return warn("store", theirs, "upgrade this server soon: see docs/scaling.md");
  return warn("store", theirs, "run `gatehouse store migrate`; servers of the version before keep running");
}
