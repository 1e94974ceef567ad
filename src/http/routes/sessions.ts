import { Elysia } from "elysia";
import Type from "typebox";
import { type Caller, tokenIdOf } from "../../access/caller.ts";
import type { Session, Sessions } from "../../access/sessions.ts";
import type { SignInLinks, UsedLink } from "../../access/sign-in-links.ts";
import type { WorkspaceStatus, Workspaces } from "../../access/workspaces.ts";
import { type Clock, optionalTimestamp, timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { isId } from "../../base/ids.ts";
import { unauthenticated } from "../../gate/gate.ts";
import { readSignIn } from "../credential.ts";
import { type Door, endpoint } from "../endpoint.ts";
import { DEFAULT_LIMIT, decodeCursor, PAGE, page } from "../page.ts";
import { endedCookie, sessionCookie } from "../session-cookie.ts";

export interface SessionRouteParts {
  readonly sessions: Sessions;
  readonly links: SignInLinks;
  readonly workspaces: Pick<Workspaces, "get">;
  readonly clock: Clock;
}

const Nothing = Type.Object({}, { additionalProperties: false });

/** Signing in and out, for browsers: what stands behind the cookie that the console's calls are authenticated by. */
export function sessionRoutes(door: Door, { sessions, links, workspaces, clock }: SessionRouteParts) {
  const { publicUrl } = door;
  const statusOf = ({ workspaceId }: Caller) => workspaces.get(workspaceId).status;
  const tag = "Sessions";

  const create = endpoint(
    door,
    {
      action: "session.create",
      scope: null,
      summary: "Sign a browser in with a token, or with a link that is good once; sets a cookie",
      tag,
      signsIn: true,
      body: Nothing,
      bodyOptional: true,
      status: 201,
    },
    async ({ call, request }) => {
      const { caller } = call;
      const tokenId = tokenIdOf(caller);
      if (tokenId === null)
        throw unauthenticated("invalid_token", "A session is a token's, and this is none.");
      const credential = readSignIn({ request, publicUrl }, door.operatorSecret);
      let link: UsedLink | undefined;
      if (credential.kind === "link") {
        link = links.use(credential.secret);
        // Somebody was faster.
        if (!link) throw unauthenticated("invalid_token", "The link was used already.");
      }
      const tokenSecret = credential.kind === "bearer" ? credential.secret : undefined;
      const userAgent = request.headers.get("user-agent");
      const { workspaceId } = caller;
      const opening = call.commit(async (tx, record) => {
        const made = await sessions.open(tx, { workspaceId, tokenId, tokenSecret, userAgent });
        if (!made) throw unauthenticated("invalid_token", "The token is unknown, expired or revoked.");
        const { id, expiresAt } = made;
        await record({
          detail: { session: id, by: link ? "link" : "token", expires_at: timestamp(expiresAt) },
        });
        return made;
      });
      const { id, secret, expiresAt } = await opening.catch((error: unknown) => {
        // Nobody was signed in by it.
        link?.giveBack();
        throw error;
      });
      const cookie = sessionCookie({ request, publicUrl }, secret, expiresAt - clock.now());
      return {
        status: 201,
        body: viewSignedIn({ ...caller, session: { id, expiresAt } }, statusOf(caller)),
        headers: { "set-cookie": cookie, "cache-control": "no-store" },
      };
    },
  );

  const read = endpoint(
    door,
    {
      action: "session.read",
      scope: null,
      summary: "Read who is asking, and what they may do",
      tag,
      status: 200,
    },
    async ({ call }) => ({ status: 200, body: viewSignedIn(call.caller, statusOf(call.caller)) }),
  );

  const remove = endpoint(
    door,
    {
      action: "session.delete",
      scope: null,
      summary: "Sign out: end the session that the call is made by",
      tag,
      status: 204,
    },
    async ({ call, request }) => {
      const { workspaceId, session } = call.caller;
      if (session) {
        call.about({ detail: { session: session.id } });
        await call.commit((tx) => sessions.end(tx, workspaceId, session.id));
      }
      return { status: 204, headers: { "set-cookie": endedCookie({ request, publicUrl }) } };
    },
  );

  const list = endpoint(
    door,
    {
      action: "session.list",
      scope: "tokens:write",
      summary: "List the browsers that are signed in, newest first",
      tag,
      query: Type.Object(PAGE, { additionalProperties: false }),
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
    door,
    { action: "session.revoke", scope: "tokens:write", summary: "End a session at once", tag, status: 204 },
    async ({ call, params: { id = "" } }) => {
      const { workspaceId, agent } = call.caller;
      const session = await sessions.get(workspaceId, id);
      // As for revoking its token: a token that acts as an agent manages that agent's alone.
      if (agent && session.agent !== agent.name) {
        throw new Problem(
          "agent_forbidden",
          `This token acts as ${agent.name} and may manage its sessions alone.`,
        );
      }
      call.about({ detail: { session: id, token: session.tokenId } });
      await call.commit((tx) => sessions.end(tx, workspaceId, id));
      return { status: 204 };
    },
  );

  return new Elysia({ prefix: "/v1" })
    .post("/session", create.handle, create.hook)
    .get("/session", read.handle, read.hook)
    .delete("/session", remove.handle, remove.hook)
    .get("/sessions", list.handle, list.hook)
    .delete("/sessions/:id", revoke.handle, revoke.hook);
}

/** Who makes a call. `token` is null for the operator on the command line, `session` for whoever sends a token's secret. */
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

/** A browser that is signed in. `current`: it makes this very call. */
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
