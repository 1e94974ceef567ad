import { ADMIN_SCOPES } from "../access/scopes.ts";
import {
  createSecret,
  hashSecret,
  hashSecretHex,
  hasSecretForm,
  hasValidChecksum,
} from "../access/secret.ts";
import type { LinkedToken } from "../access/sign-in-links.ts";
import type { Tokens } from "../access/tokens.ts";
import { DEFAULT_WORKSPACE, type Workspaces } from "../access/workspaces.ts";
import { OperatorError } from "../base/errors.ts";
import type { RandomSource } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Detail } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { containsSql } from "../store/common-sql.ts";
import type { Db, Sql, Tx } from "../store/db.ts";
import type { LedgerHistories } from "./ledger-histories.ts";

export interface AdminParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly tokens: Tokens;
  readonly workspaces: Workspaces;
  readonly histories: Pick<LedgerHistories, "of">;
  readonly random: RandomSource;
  readonly log: Log;
}

/**
 * Makes sure that somebody can sign in. A configured secret becomes an admin token of `default` once; if it is
 * revoked or replaced by rotation, it never comes back. Without a configured secret, the first start creates a token,
 * unless an admin token has ever been created. The secret is handed over just before it is stored, so nobody is
 * locked out if the process dies in between.
 * @returns the token whose secret was handed over; null if there was none
 * @throws OperatorError if the configured secret does not have the form of a secret
 */
export async function ensureAdmin(
  parts: AdminParts,
  configured: string | undefined,
  handOver: (secret: string) => void,
): Promise<LinkedToken | null> {
  const { db, ledger, tokens, workspaces, histories, random, log } = parts;
  const workspace = workspaces.find(DEFAULT_WORKSPACE);
  if (!workspace) throw new Error("there is no default workspace");
  const { id: workspaceId } = workspace;
  if (configured === undefined) {
    const made = await findAdmin(db, workspaceId);
    // The rows may have been deleted or changed; the ledger shows that there was one.
    if (made || histories.of(workspaceId).hasAdmin) return null;
  } else {
    if (!hasSecretForm(configured)) {
      throw new OperatorError(
        "GATEHOUSE_ADMIN_TOKEN is not a Gatehouse secret (gth_ followed by 49 letters and digits)",
        "create one with: gatehouse token secret",
        2,
      );
    }
    if (!hasValidChecksum(configured))
      log.warn("the checksum of GATEHOUSE_ADMIN_TOKEN is wrong; was it mistyped?");
    const id = configuredId(configured);
    if (histories.of(workspaceId).wasConfigured(id)) return null;
    const known = await db.get(
      `SELECT 1 FROM meta WHERE key = $1
       UNION ALL SELECT 1 FROM tokens WHERE secret_hash = $2 OR previous_hash = $2`,
      [formerKey(configured), hashSecret(configured)],
    );
    if (known) {
      await db.tx(workspaceId, (tx) => recordConfigured(tx, id, "token.configure", {}));
      return null;
    }
  }
  const secret = configured ?? createSecret(random);
  let isHandedOver = false;
  const tokenId = await db.tx(workspaceId, async (tx) => {
    // Another node that starts now may have been first.
    const known = await (configured === undefined ? findAdmin(tx, workspaceId) : findSecret(tx, configured));
    if (known) return null;
    if (configured === undefined && !isHandedOver) {
      handOver(secret);
      isHandedOver = true;
    }
    const issued = await tokens.issue(
      tx,
      workspaceId,
      "system",
      { name: "admin", agent: null, scopes: ADMIN_SCOPES, person: null, role: null, expiresIn: null },
      secret,
    );
    await recordConfigured(tx, configuredId(secret), "token.issue", {
      token: issued.token.id,
      scopes: ADMIN_SCOPES.join(" "),
    });
    return issued.token.id;
  });
  if (configured !== undefined || tokenId === null) return null;
  return { workspaceId, tokenId, secretHash: hashSecret(secret) };

  async function recordConfigured(tx: Tx, id: string, action: string, detail: Detail): Promise<void> {
    await ledger.append(tx, workspaceId, {
      ...{ phase: "single", action, outcome: "succeeded", channel: "system", actor: "system" },
      detail: { ...detail, configured: id },
    });
  }
}

function findAdmin(sql: Pick<Sql, "get">, workspaceId: number): Promise<unknown> {
  return sql.get(
    `SELECT 1 AS made FROM tokens WHERE workspace_id = $1 AND ${containsSql("scopes", "$2")} LIMIT 1`,
    [workspaceId, '"admin"'],
  );
}

function findSecret(sql: Pick<Sql, "get">, secret: string): Promise<unknown> {
  return sql.get("SELECT 1 FROM tokens WHERE secret_hash = $1", [hashSecret(secret)]);
}

/**
 * Identifies a configured secret in the ledger, which shows that the secret was installed, whatever is done to the
 * rows. Hashed once more, so that the ledger does not contain the hash by which callers are found.
 */
function configuredId(secret: string): string {
  return hashSecretHex(`${CONFIGURED_DOMAIN}${hashSecretHex(secret)}`);
}

const CONFIGURED_DOMAIN = "gatehouse configured admin token v1\n";

/** The note by which earlier versions remembered a configured secret. */
function formerKey(secret: string): string {
  return `admin:${hashSecretHex(secret)}`;
}
