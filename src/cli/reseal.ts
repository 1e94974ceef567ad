import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import { createLog } from "../base/log.ts";
import { verifyDirectory } from "../ledger/verify/directory.ts";
import { counted } from "../ledger/verify/report.ts";
import { tools } from "../ledger/verify/tools.ts";
import type { SqlValue } from "../store/db.ts";
import { databasePath } from "../store/directory.ts";
import { MOST_LISTED, type SealedRowsCheck, type UnsealedRow } from "../store/seals/unsealed-rows.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";
import { print } from "./output.ts";

interface ResealOptions extends ConfigOptions {
  readonly yes?: boolean;
}

/** Maximum number of characters shown of a value. */
const MOST_SHOWN = 120;

/** `reseal`: for operators who have lost secrets.key or deliberately restored an older database. */
export function resealCommand(): Command {
  return command("reseal", "seal the rows of the database as they are, with the current key")
    .option("--yes", "seal the listed rows without asking")
    .addHelpText(
      "after",
      `
Tokens, agents, tasks and other rows that carry authority are sealed with secrets.key (or master_key), so
that changes in the file are detected. Use this if that key is lost, or if a start reports rows that you have
changed yourself. It lists the rows whose seals do not match, and what it finds changed in the ledgers, and asks:
from then on, all of them are accepted. The rows are recorded in the ledgers. Stop the server first.`,
    )
    .action(reseal);
}

async function reseal(options: ResealOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  if (config.store) {
    throw new OperatorError(
      "rows of a store that several servers share cannot be sealed as they are",
      "restore the database from a backup; `gatehouse ledger verify --store` reports what was changed",
      2,
    );
  }
  const path = databasePath(config.dataDir);
  if (!existsSync(path)) {
    throw new OperatorError(
      `there is no database in ${config.dataDir}`,
      "choose the directory with --data",
      2,
    );
  }
  const isChanged = await printLedgerFindings(path);
  const { openGateway } = await import("../gateway.ts");
  const gateway = await openGateway(config, {
    log: createLog("warn", systemClock),
    acceptRows: (check) => requireConsent(check, isChanged, options.yes ?? false),
  });
  await gateway.stop();
  print("The rows are sealed as they are.");
}

/**
 * Entries that were changed may have revoked tokens that are now valid again.
 * @returns whether there is any finding
 */
async function printLedgerFindings(path: string): Promise<boolean> {
  const trust = { keys: [], checkpoints: [] };
  const { findings, ledgers } = await verifyDirectory({ path, trust, workspace: null }, tools);
  const all = [...findings, ...ledgers.flatMap((ledger) => ledger.findings)];
  if (all.length > 0) print("Found in the ledgers:");
  for (const { workspace, message } of all) {
    print(`  ${workspace === undefined ? "" : `${workspace}: `}${message}`);
  }
  return all.length > 0;
}

/** @throws OperatorError if the operator does not accept the rows */
function requireConsent(
  { intact, broken, brokenCount }: SealedRowsCheck,
  isLedgerChanged: boolean,
  isAccepted: boolean,
): void {
  print(`${counted(intact)} rows are as this server wrote them.`);
  if (brokenCount === 0 && !isLedgerChanged) return;
  print(`${counted(brokenCount)} rows are not sealed with the current key:`);
  for (const row of broken) print(`  ${describe(row)}`);
  if (brokenCount > MOST_LISTED) print(`  … and ${counted(brokenCount - MOST_LISTED)} more`);
  if (isAccepted) return;
  if (process.stdin.isTTY && confirm("Seal them, so that all of them are accepted?")) return;
  throw new OperatorError(
    "nothing was sealed",
    process.stdin.isTTY ? undefined : "review the rows, and accept them with `gatehouse reseal --yes`",
  );
}

function describe({ table, name, values }: UnsealedRow): string {
  const columns = Object.entries(values).filter(([, value]) => value !== null);
  return `${table} ${JSON.stringify(name)}: ${columns.map(([key, value]) => `${key}=${shown(value)}`).join(" ")}`;
}

/**
 * As JSON, without characters that a terminal would act on or that would change the order of a line. A long value is cut,
 * with its length and digest, so that a change beyond the cut can be seen too.
 */
function shown(value: SqlValue): string {
  const text = value instanceof Uint8Array ? value.toHex() : JSON.stringify(value);
  const printable = text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "\uFFFD");
  if (printable.length <= MOST_SHOWN) return printable;
  const digest = createHash("sha256")
    .update(typeof value === "string" ? value : text)
    .digest("hex");
  return `${printable.slice(0, MOST_SHOWN)}… (${counted(text.length)} characters, SHA-256 ${digest})`;
}
