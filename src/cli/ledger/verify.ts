import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { OperatorError } from "../../base/errors.ts";
import { lookUp } from "../../config/environment.ts";
import { isPostgresUrl } from "../../config/postgres-url.ts";
import { readTextFile } from "../../config/read-file.ts";
import { TABLE } from "../../config/table.ts";
import type { SignedCheckpoint } from "../../ledger/proof/checkpoint.ts";
import type { VerifierKey } from "../../ledger/proof/note.ts";
import type { TrustAnchors, Verdict } from "../../ledger/proof/verification.ts";
import { verifyBundle } from "../../ledger/verify/bundle/verify.ts";
import { type DirectoryVerification, verifyDirectory } from "../../ledger/verify/directory.ts";
import { parseKeys } from "../../ledger/verify/keyring.ts";
import { type ReadStore, verifySharedStore } from "../../ledger/verify/shared-store.ts";
import { bundleTools, tools } from "../../ledger/verify/tools.ts";
import { StoreUnavailable } from "../../store/db.ts";
import { databasePath, isFile } from "../../store/directory.ts";
import { Snapshots } from "../../store/postgres/snapshots.ts";
import { findSecretKey, requireMasterKey, type SecretKey } from "../../store/secret-key.ts";
import { printJson } from "../output.ts";
import { readCheckpointFile } from "./read-checkpoints.ts";
import { printVerification } from "./verification-view.ts";

export interface VerifyOptions {
  readonly data?: string;
  readonly bundle?: string;
  /** True if the variable names it. A URL in the arguments is visible to other processes. */
  readonly store?: string | true;
  readonly key?: string;
  readonly checkpoint?: string;
  readonly workspace?: string;
  readonly json?: boolean;
}

export const EXIT_CODES: Readonly<Record<Verdict, 0 | 1 | 3>> = { holds: 0, tampered: 1, undecided: 3 };
const WRONG_USAGE = 2;
const VARIABLE = "GATEHOUSE_DATA";
const MASTER_KEY = "GATEHOUSE_MASTER_KEY";
const STORE = "GATEHOUSE_STORE";
const KEY_FILE_LIMIT = 64 * 1024;

/**
 * Verifies a data directory or bundle, prints the findings, and sets the exit code: 0 if the evidence holds, 1 if it
 * was tampered with, 3 if undecided.
 */
export async function verifyLedger(options: VerifyOptions): Promise<void> {
  const { bundle, data, workspace = null, json = false } = options;
  if (bundle !== undefined && (data !== undefined || workspace !== null)) {
    throw wrong("--bundle: a bundle has one workspace and no data directory: omit --data and --workspace");
  }
  if (options.store !== undefined && (data !== undefined || bundle !== undefined)) {
    throw wrong("--store: give only one of --store, --data and --bundle");
  }
  const trust = await readTrust(options);
  const result =
    options.store !== undefined
      ? await verifyStore(storeUrl(options.store), trust, workspace)
      : bundle === undefined
        ? await verifyData(databaseOf(data), trust, workspace)
        : await verifyBundle(bundleFile(bundle), trust, bundleTools);
  if (json) printJson(result);
  else printVerification(result, isUntrusting(trust));
  process.exitCode = EXIT_CODES[result.verdict];
}

/** The keys and checkpoints that the options name. @throws OperatorError */
export async function readTrust({
  key,
  checkpoint,
}: Pick<VerifyOptions, "key" | "checkpoint">): Promise<TrustAnchors> {
  return {
    keys: key === undefined ? [] : readKeys(key),
    checkpoints: checkpoint === undefined ? [] : await readCheckpoints(checkpoint),
  };
}

/** Whether nothing that was kept elsewhere is compared. */
export function isUntrusting({ keys, checkpoints }: TrustAnchors): boolean {
  return keys.length === 0 && checkpoints.length === 0;
}

function verifyData(
  path: string,
  trust: TrustAnchors,
  workspace: string | null,
): Promise<DirectoryVerification> {
  return verifyDirectory({ path, trust, workspace, secretKey: keyBeside(path) }, tools);
}

/** @throws OperatorError if the database cannot be read */
async function verifyStore(
  url: string,
  trust: TrustAnchors,
  workspace: string | null,
): Promise<DirectoryVerification> {
  const snapshots = new Snapshots({ url });
  try {
    const read: ReadStore = (work) => snapshots.read(work);
    return await verifySharedStore(read, { trust, workspace, secretKey: masterKeyOf() }, tools);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    throw new OperatorError(
      `the store cannot be read: ${error.message}`,
      "check the URL, and that the server runs and can be reached",
      3,
    );
  } finally {
    await snapshots.close();
  }
}

function storeUrl(given: string | true): string {
  const found = given === true ? lookUp(process.env, readTextFile, STORE) : undefined;
  if (found && "failure" in found) throw wrong(`${STORE}: ${found.failure}`);
  const url = given === true ? (found?.value ?? "") : given;
  if (isPostgresUrl(url)) return url;
  throw wrong("--store: give a URL of the form postgres://user:password@host/database", `or set ${STORE}`);
}

/** The key of the rows' seals, if `GATEHOUSE_MASTER_KEY` is set. */
function masterKeyOf(): SecretKey | undefined {
  const found = lookUp(process.env, readTextFile, MASTER_KEY);
  if (found && "failure" in found) throw wrong(`${MASTER_KEY}: ${found.failure}`);
  if (!found?.value) return undefined;
  return { ...requireMasterKey(found.value), from: "setting", hasSealed: true, markSealed() {} };
}

/**
 * The key file next to the database, if it is usable. A key from a setting is unknown here, because no settings are
 * read.
 */
export function keyBeside(path: string): SecretKey | undefined {
  try {
    return findSecretKey({ masterKey: undefined, dataDir: dirname(path) });
  } catch (error) {
    if (error instanceof OperatorError) return undefined;
    throw error;
  }
}

/** Reads no configuration: a copy is verified without its secrets and endpoints. */
function databaseOf(data: string | undefined): string {
  const found = data === undefined ? lookUp(process.env, readTextFile, VARIABLE) : undefined;
  if (found && "failure" in found) throw wrong(`${VARIABLE}: ${found.failure}`);
  const named = data ?? (found?.value || String(TABLE.data.default));
  const path = databasePath(resolve(named));
  if (!isFile(path)) {
    throw wrong(`there is no data directory ${named}, or no database in it`, "give its path with --data");
  }
  return path;
}

function bundleFile(path: string): Blob {
  if (!isFile(path)) throw wrong(`--bundle: there is no file ${path}`);
  return Bun.file(path);
}

/**
 * A verifier key has two plus signs and a slash in places where no sensible path has them; anything else is a file.
 */
function readKeys(given: string): readonly VerifierKey[] {
  if (/^[^+\s]+\+[0-9a-fA-F]{8}\+\S+$/.test(given)) return parseKeys(given, tools);
  return parseKeys(readText("--key", given, KEY_FILE_LIMIT), tools);
}

async function readCheckpoints(path: string): Promise<readonly SignedCheckpoint[]> {
  const { found, broken, problem } = await readCheckpointFile(path).catch((error: unknown) => {
    throw error instanceof Error ? wrong(`--checkpoint: ${error.message}`) : error;
  });
  if (found.length === 0)
    throw wrong(`--checkpoint: there is no checkpoint in ${path}: ${problem ?? "it is empty"}`);
  if (broken > 0) {
    process.stderr.write(
      `gatehouse: skipped ${broken} incomplete ${broken === 1 ? "checkpoint" : "checkpoints"} in ${path}\n`,
    );
  }
  return found;
}

function readText(option: string, path: string, limit: number): string {
  try {
    const { size } = statSync(path);
    if (size > limit) throw wrong(`${option}: ${path} is larger than ${limit / 1024} KiB`);
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof OperatorError || !(error instanceof Error)) throw error;
    throw wrong(`${option}: ${error.message}`);
  }
}

function wrong(message: string, hint?: string): OperatorError {
  return new OperatorError(message, hint, WRONG_USAGE);
}
