/** A session that ends while it is being read must not be cached afterwards. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { hashSecret } from "../../src/access/secret.ts";
import { createSessions } from "../../src/access/sessions.ts";
import { createTokens, type Tokens } from "../../src/access/tokens.ts";
import { openWorkspaces } from "../../src/access/workspaces.ts";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import type { Db } from "../../src/store/db.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { FakeClock } from "../support/clock.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";

const directory = tempDir();
const clock = new FakeClock();
const ids = createIds(clock, systemRandom);
let db: Db;
let tokens: Tokens;
let workspaceId: number;

beforeAll(async () => {
  db = openSqlite(join(directory.path, "gatehouse.db"), {
    libraries: directory.path,
    seals: SEALS,
    rerunWork: true,
  });
  const limits = { requestsPerMinute: 600, concurrentTasks: 60, enforcement: "soft" } as const;
  const workspaces = await openWorkspaces(db, clock, limits);
  workspaceId = workspaces.find("default")?.id ?? 0;
  tokens = createTokens(db, clock, ids, systemRandom);
});
afterAll(async () => {
  await db.close();
  directory.remove();
});

test.each(["the token is revoked", "the session is ended"])("while %s", async (event) => {
  const held = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const sessions = createSessions({
    ...{ db, clock, ids, random: systemRandom, lifetimeMs: 60_000 },
    tokens: {
      ...tokens,
      // Slow, so what it read is out of date by the time it answers.
      async callerOf(workspace, id) {
        const caller = await tokens.callerOf(workspace, id);
        asked.resolve();
        await held.promise;
        return caller;
      },
    },
  });
  const token = { agent: null, scopes: ["admin"], person: null, role: null, expiresIn: null };
  const issued = await db.tx(1, (tx) => tokens.issue(tx, workspaceId, "system", { name: "t", ...token }));
  const tokenId = issued.token.id;
  const signIn = { workspaceId, tokenId, secretHash: hashSecret(issued.secret), userAgent: null };
  const opened = await db.tx(1, (tx) => sessions.open(tx, signIn));
  const { id = "", secret = "" } = opened ?? {};
  const first = sessions.authenticate(secret);
  await asked.promise;
  await db.tx(1, (tx) =>
    event === "the token is revoked"
      ? tokens.revoke(tx, workspaceId, tokenId)
      : sessions.end(tx, workspaceId, id),
  );
  held.resolve();
  // This one started before the change, so either answer is correct.
  await first;
  expect(await sessions.authenticate(secret)).toBeUndefined();
});
