import { createAgents } from "../access/agents.ts";
import { recheckRights } from "../access/recheck.ts";
import { createSessions } from "../access/sessions.ts";
import { SharedSignInLinks } from "../access/shared-sign-in-links.ts";
import { MemorySignInLinks } from "../access/sign-in-links.ts";
import { createTokens } from "../access/tokens.ts";
import type { Config } from "../config/config.ts";
import { createGate } from "../gate/gate.ts";
import { createLimitNotices } from "../gate/notices.ts";
import { openBudgets } from "../gate/open-budgets.ts";
import { createRefusedCallers } from "../gate/refused.ts";
import { endReplayedTokens } from "../gate/replayed-tokens.ts";
import { LocalRequestLimiter } from "../gate/requests.ts";
import { sharedNoticeClaims } from "../gate/shared-notices.ts";
import { SharedRequestLimiter } from "../gate/shared-requests.ts";
import { TokenRenewal } from "../gate/token-renewal.ts";
import { LateRecords } from "../gate/unwritten-decisions.ts";
import { UsageSlots } from "../gate/usage/slots.ts";
import type { Evidence } from "./evidence.ts";
import type { Platform } from "./platform.ts";
import type { Store } from "./store.ts";

const HOUR_MS = 3_600_000;
/** The lease of the node that maintains the statistics. */
const MOVES_USAGE = "usage";

export type GateParts = Awaited<ReturnType<typeof openGate>>;

/** Phase 3: opens access control and the gate that every call passes through. */
export async function openGate(
  config: Config,
  { clock, random, ids, log }: Platform,
  { db, nodes }: Store,
  { workspaces, workspaceIds, ledgers, announcements, histories }: Evidence,
) {
  const { ledger } = ledgers;
  const { bus } = nodes;
  const agents = createAgents(db, clock, workspaces, random, bus);
  const tokens = createTokens(db, clock, ids, random, (tx, id) => histories.of(id).firstRotations(tx), bus);
  await endReplayedTokens({ db, tokens, clock, histories }, workspaces.list());
  const tokenRenewal = new TokenRenewal({ db, ledger, histories, workspaceIds });
  const lifetimeMs = config.console.sessionHours * HOUR_MS;
  const sessions = createSessions({ db, tokens, clock, ids, random, lifetimeMs });
  const links = nodes.isShared
    ? new SharedSignInLinks(db, clock, random)
    : new MemorySignInLinks(clock, random);
  const shared = nodes.isShared ? { db, claims: sharedNoticeClaims } : null;
  const notices = createLimitNotices(ledger, clock, log, shared);
  const limiter = nodes.isShared
    ? new SharedRequestLimiter({ db, clock, log, nodes, workspace: (id) => workspaces.get(id) })
    : new LocalRequestLimiter();
  const { toolPrices } = config;
  const budgets = openBudgets({ db, nodes, ledger, workspaces, clock, log, announcements, toolPrices });
  nodes.leases.hold(MOVES_USAGE, () => () => {});
  const usageSlots = new UsageSlots(db, clock, workspaceIds, () => nodes.leases.has(MOVES_USAGE));
  const refused = createRefusedCallers(ledger, clock);
  const late = new LateRecords(db, clock, log);
  const gate = createGate({
    ...{ db, bus, ledger, tokens, sessions, links, workspaces, limiter, notices, refused, late },
    ...{ clock, log },
  });
  recheckRights({ nodes, agents, tokens, workspaces });
  return { agents, tokens, tokenRenewal, sessions, links, notices, budgets, usageSlots, refused, late, gate };
}
