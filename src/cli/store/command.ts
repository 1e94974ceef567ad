import type { Command } from "commander";
import { OperatorError } from "../../base/errors.ts";
import type { SharedStoreConfig } from "../../config/config.ts";
import { isPostgresUrl } from "../../config/postgres-url.ts";
import { type ConfigOptions, command, plain, resolveConfig } from "../options.ts";
import { print, printJson } from "../output.ts";

interface MigrateOptions extends ConfigOptions {
  readonly json?: boolean;
}

interface CopyOptions extends ConfigOptions {
  /** True if no URL follows. */
  readonly to?: string | true;
  readonly from?: string | true;
  readonly json?: boolean;
}

const WRONG_USAGE = 2;

const MIGRATE_HELP = `
The first server of a new version does this by itself as well. Servers of the version before keep running.`;

const COPY_HELP = `
  gatehouse store copy --data DIR --to postgres://user:password@host/database
  gatehouse store copy --from postgres://user:password@host/database --data DIR

Copies everything, and verifies the copy: either all of it is there afterwards, or nothing. Stop all servers first. The
database must be empty, or DIR be missing or empty. GATEHOUSE_MASTER_KEY must be set to the master key of the servers that
share the database. Vectors of an embedding model are not copied: they are made again.

Other users of this machine can see a password in a command. Without a URL, --to and --from mean the setting \`store\`
(GATEHOUSE_STORE, or GATEHOUSE_STORE_FILE).

What was copied stays where it was. Never start a server on both: their ledgers would differ from then on.`;

/** `store`: the database that servers share. */
export function storeCommand(): Command {
  return plain("store", "upgrade the database that servers share, and copy a store to or from one")
    .addCommand(
      command("migrate", "create or upgrade the schema of the store's database")
        .option("--json", "print JSON")
        .addHelpText("after", MIGRATE_HELP)
        .action(migrateStore),
    )
    .addCommand(
      command("copy", "copy a data directory into an empty database, or back")
        .option("--to [url]", "the database to copy the data directory into")
        .option("--from [url]", "the database to copy into the data directory")
        .option("--json", "print JSON")
        .addHelpText("after", COPY_HELP)
        .action(copyStore),
    );
}

async function migrateStore(options: MigrateOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  const { upgrade } = await import("../../store/postgres/upgrade.ts");
  const { from, to } = await upgrade(urlOf(true, "store", config.store));
  if (options.json) printJson({ from, to });
  else if (from === to) print(`The schema has version ${to} already.`);
  else if (from === 0) print(`The schema was created with version ${to}.`);
  else print(`The schema was upgraded from version ${from} to ${to}.`);
}

async function copyStore({ to, from, json, ...options }: CopyOptions): Promise<void> {
  if ((to === undefined) === (from === undefined)) {
    throw new OperatorError("name one database, with --to or --from", undefined, WRONG_USAGE);
  }
  const { config } = await resolveConfig(options);
  const parts = {
    dataDir: config.dataDir,
    masterKey: config.masterKey,
    progress: (line: string) => process.stderr.write(`${line}\n`),
  };
  const copied =
    to === undefined
      ? await (await import("./copy/from-postgres.ts")).copyFromPostgres({
          ...parts,
          url: urlOf(from, "--from", config.store),
        })
      : await (await import("./copy/to-postgres.ts")).copyToPostgres({
          ...parts,
          url: urlOf(to, "--to", config.store),
        });
  if (json) printJson(copied);
  else {
    for (const { workspace, entries } of copied.ledgers) print(`${workspace}\t${entries} entries`);
    print(`Copied and verified ${copied.rows} rows of ${copied.tables} tables.`);
  }
}

/** A direct URL: the one that was given, or else that of the setting `store`. @throws OperatorError */
function urlOf(
  given: string | true | undefined,
  option: string,
  store: SharedStoreConfig | undefined,
): string {
  if (typeof given === "string") {
    if (isPostgresUrl(given)) return given;
    throw new OperatorError(
      `${option}: is not a URL of the form postgres://user:password@host:port/database`,
      "percent-encode special characters of the password",
      WRONG_USAGE,
    );
  }
  if (store) return store.directUrl ?? store.url;
  throw new OperatorError(
    "the setting store is missing",
    "set GATEHOUSE_STORE to postgres://user:password@host:port/database",
    WRONG_USAGE,
  );
}
