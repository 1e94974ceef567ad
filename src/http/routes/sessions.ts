import { Elysia } from "elysia";
import Type from "typebox";
import { type Caller, tokenIdOf } from "../../access/caller.ts";
import { hashSecret } from "../../access/secret.ts";
import type { Session, Sessions } from "../../access/sessions.ts";
import type { RedeemedLink, SignInLinks } from "../../access/sign-in-links.ts";
import type { Tokens } from "../../access/tokens.ts";
import type { WorkspaceStatus, Workspaces } from "../../access/workspaces.ts";
import { type Clock, optionalTimestamp, timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { isId } from "../../base/ids.ts";
import type { Call } from "../../gate/call.ts";
import { applyStop } from "../../gate/record-stop.ts";
import { unauthenticated } from "../../gate/rights.ts";
import { DEFAULT_LIMIT, decodeCursor, LIST_QUERY, page } from "../answer/page.ts";
import { readBrowserCredential, readSignIn } from "../caller/credential.ts";
import { dropsSecureCookies } from "../caller/own-origin.ts";
import { endedCookie, sessionCookie } from "../caller/session-cookie.ts";
import { requireHeld } from "../caller/token-authority.ts";
import { type Endpoint, type EndpointContext, endpoint } from "../endpoint.ts";

export interface SessionRouteParts {
  readonly sessions: Sessions;
  readonly tokens: Pick<Tokens, "get">;
  readonly links: SignInLinks;
  readonly workspaces: Pick<Workspaces, "get">;
  readonly clock: Clock;
}

const Nothing = Type.Object({}, { additionalProperties: false });

/** Signing browsers in and out: manages the cookie that authenticates the console's calls. */
export function sessionRoutes(
  endpoints: EndpointContext,
  { sessions, tokens, links, workspaces, clock }: SessionRouteParts,
) {
  const { publicUrl, operatorSecret } = endpoints;
  const statusOf = ({ workspaceId }: Caller) => workspaces.get(workspaceId).status;
  const tag = "Sessions";

  const create = endpoint(
    endpoints,
    {
      action: "session.create",
      scope: null,
      summary: "Sign a browser in with a token or a one-time link; sets a cookie",
      tag,
      signsIn: true,
      // A user kept out by the limit could not see what used it up, nor do anything about it. Guessing 256 bits is
      // hopeless.
      urgent: true,
      body: Nothing,
      bodyOptional: true,
      status: 201,
    },
    async ({ call, request }) => {
      const { caller } = call;
      const tokenId = tokenIdOf(caller);
      if (tokenId === null)
        throw unauthenticated("invalid_token", "Only a token or a one-time link can open a session.");
      const asked = { request, publicUrl };
      // Checked before a link is used up for a session whose cookie the browser would drop.
      if (dropsSecureCookies(asked)) throw insecureOrigin(publicUrl);
      const credential = readSignIn(asked, operatorSecret);
      if (credential.kind !== "link" && credential.kind !== "bearer") {
        throw unauthenticated("invalid_token", "Only a token or a one-time link can open a session.");
      }
      const userAgent = request.headers.get("user-agent");
      const { workspaceId } = caller;
      const opened = await call.commit(async (tx, record) => {
        let link: RedeemedLink | undefined;
        if (credential.kind === "link") {
          link = await links.use(tx, credential.secret);
          // Another request used the link first.
          if (!link)
            throw unauthenticated(
              "invalid_token",
              "The link has already been used. Create a new one with: gatehouse console",
            );
        }
        const secretHash = link?.secretHash ?? hashSecret(credential.secret);
        const made = await sessions.open(tx, { workspaceId, tokenId, secretHash, userAgent });
        if (!made) throw unauthenticated("invalid_token", "The token is unknown, expired or revoked.");
        const { id, expiresAt } = made;
        await record({
          detail: {
            session: id,
            by: link ? "link" : "token",
            expires_at: timestamp(expiresAt),
            link_by: link?.maker.actor,
            link_seq: link?.maker.ledgerSeq ?? undefined,
          },
        });
        return made;
      });
      const { id, secret, expiresAt } = opened;
      const cookie = sessionCookie(asked, secret, expiresAt - clock.now());
      return {
        status: 201,
        body: viewSignedIn({ ...caller, session: { id, expiresAt } }, statusOf(caller)),
        headers: { "set-cookie": cookie, "cache-control": "no-store" },
      };
    },
  );

  const read = endpoint(
    endpoints,
    {
      action: "session.read",
      scope: null,
      summary: "Read the identity and the rights of the caller",
      tag,
      // The console's first request, which must work even if the limit is used up.
      urgent: true,
      status: 200,
    },
    async ({ call }) => ({ status: 200, body: viewSignedIn(call.caller, statusOf(call.caller)) }),
  );

  const remove = endpoint(
    endpoints,
    {
      action: "session.delete",
      scope: null,
      summary: "Sign out: end the session that makes the call",
      tag,
      urgent: true,
      status: 204,
    },
    async ({ call }) => {
      const { session } = call.caller;
      if (session) await endAtOnce(call, session.id, { session: session.id });
      return { status: 204 };
    },
  );

  /**
   * Removes the cookie whatever the response, because the user is done with it. A page from another origin cannot
   * sign anyone out.
   */
  const signOut: Endpoint["handle"] = async (context) => {
    const answer = await remove.handle(context);
    const asked = { request: context.request, publicUrl };
    if (readBrowserCredential(asked, operatorSecret).kind !== "foreign_page")
      answer.headers.set("set-cookie", endedCookie(asked));
    return answer;
  };

  /** Takes effect immediately, even if the store cannot be written: signing out must not wait for a disk. */
  async function endAtOnce(call: Call, id: string, detail: Readonly<Record<string, string>>): Promise<void> {
    const { workspaceId } = call.caller;
    call.about({ detail });
    const decision = await call.decideOwn(detail, clock);
    await applyStop(call, {
      decision,
      halt: sessions.halt(id),
      write: (tx) => sessions.end(tx, workspaceId, id),
      // `sessions.changed` notifies the streams.
      endWork: async () => {},
    });
  }

  const list = endpoint(
    endpoints,
    {
      action: "session.list",
      scope: "tokens:write",
      summary: "List signed-in browsers, newest first",
      tag,
      query: LIST_QUERY,
      status: 200,
    },
    async ({ call: { caller }, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const before = decodeCursor(cursor, (key) => isId("ses", key));
      const found = await sessions.list(caller.workspaceId, limit, before, caller.agent?.id);
      const view = (session: Session) => viewSession(session, caller.session?.id);
      return { status: 200, body: page(found, limit, ({ id }) => id, view) };
    },
  );

  const revoke = endpoint(
    endpoints,
    {
      action: "session.revoke",
      scope: "tokens:write",
      summary: "End a session immediately",
      tag,
      urgent: true,
      status: 204,
    },
    async ({ call, params: { id = "" } }) => {
      const { workspaceId, agent } = call.caller;
      const session = await sessions.get(workspaceId, id);
      // As when revoking a token: a token acting as an agent manages only that agent's sessions.
      if (agent && session.agent !== agent.name) {
        throw new Problem(
          "agent_forbidden",
          `This token acts as ${agent.name} and can only manage its own sessions.`,
        );
      }
      const { scopes } = await tokens.get(workspaceId, session.tokenId);
      requireHeld(call.caller, scopes);
      await endAtOnce(call, id, { session: id, token: session.tokenId });
      return { status: 204 };
    },
  );

  return new Elysia({ prefix: "/v1" })
    .post("/session", create.handle, create.hook)
    .get("/session", read.handle, read.hook)
    .delete("/session", signOut, remove.hook)
    .get("/sessions", list.handle, list.hook)
    .delete("/sessions/:id", revoke.handle, revoke.hook);
}

function insecureOrigin(publicUrl: string | null): Problem {
  const where = publicUrl?.startsWith("https:") ? `at public_url, which is ${publicUrl}` : "over HTTPS";
  return new Problem(
    "insecure_origin",
    `This page was opened over plain HTTP, so the browser would drop the session's cookie. Open the console ${where}.`,
  );
}

/**
 * Identifies the caller. `token` is null for the operator on the command line; `session` is null if the caller sends
 * a token's secret.
 */
export function viewSignedIn(caller: Caller, status: WorkspaceStatus) {
  const token = tokenIdOf(caller);
  const { session } = caller;
  return {
    workspace: caller.workspace,
    workspace_status: status,
    actor: caller.actor,
    token: token === null ? null : { id: token, name: caller.name },
    agent: caller.agent?.name ?? null,
    scopes: caller.scopes,
    person: caller.person,
    role: caller.role,
    session: session ? { id: session.id, expires_at: timestamp(session.expiresAt) } : null,
  };
}

/** A signed-in browser. `current`: it makes this call. */
export function viewSession(session: Session, current: string | undefined) {
  return {
    id: session.id,
    token: session.tokenId,
    name: session.name,
    person: session.person,
    user_agent: session.userAgent,
    created_at: timestamp(session.createdAt),
    last_used_at: optionalTimestamp(session.lastUsedAt),
    expires_at: timestamp(session.expiresAt),
    current: session.id === current,
  };
}
