import { Elysia } from "elysia";
import Type from "typebox";
import type { Agents } from "../../access/agents.ts";
import { type Caller, tokenIdOf } from "../../access/caller.ts";
import { AGENT_TOKEN_SCOPES, isScope } from "../../access/scopes.ts";
import { callerEnd, countTokens } from "../../access/token-rows.ts";
import type { IssuedTokenSecret, Token, Tokens } from "../../access/tokens.ts";
import { type Clock, optionalTimestamp, timestamp } from "../../base/clock.ts";
import { DURATION_PATTERN, parseDuration } from "../../base/duration.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import { isId } from "../../base/ids.ts";
import { redact } from "../../base/log.ts";
import type { Detail } from "../../ledger/entry.ts";
import { DEFAULT_LIMIT, decodeCursor, LIST_QUERY, page } from "../answer/page.ts";
import { holderOf, requireHeld, requireIssuable, requireRotatable } from "../caller/token-authority.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

const Duration = Type.String({ pattern: DURATION_PATTERN, description: "Such as `90d`, `12h`, `10m`." });
export const TokenCreate = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 200 }),
    agent: Type.Optional(
      Type.String({ minLength: 1, maxLength: 63, description: "The agent that it acts as." }),
    ),
    scopes: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 206 }), { minItems: 1, maxItems: 100 }),
    ),
    expires_in: Type.Optional(Duration),
    tools_mode: Type.Optional(
      Type.Enum(["all", "search"], {
        description: "`search`: MCP clients see only two tools, which find and call the others.",
      }),
    ),
    person: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: "The person who holds it." }),
    ),
    role: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: "The role in which they hold it." }),
    ),
  },
  { additionalProperties: false },
);
/** Maximum number of a workspace's tokens that have not been revoked. */
const TOKEN_LIMIT = 5_000;
/** A later time could not be written, because RFC 3339 ends with the year 9999. */
const LONGEST_MS = 36_500 * 86_400_000;
export const TokenRotate = Type.Object({ grace: Type.Optional(Duration) }, { additionalProperties: false });

export interface TokenRouteParts {
  readonly tokens: Tokens;
  readonly agents: Agents;
  readonly clock: Pick<Clock, "now">;
}

export function tokenRoutes(endpoints: EndpointContext, { tokens, agents, clock }: TokenRouteParts) {
  const tag = "Tokens";

  const list = endpoint(
    endpoints,
    {
      action: "token.list",
      scope: "tokens:write",
      summary: "List tokens, newest first, without their secrets",
      tag,
      query: LIST_QUERY,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const before = decodeCursor(cursor, (key) => isId("tok", key));
      const found = await tokens.list(call.caller.workspaceId, limit, before, call.caller.agent?.id);
      return { status: 200, body: page(found, limit, (token) => token.id, viewToken) };
    },
  );

  const issue = endpoint(
    endpoints,
    {
      action: "token.issue",
      scope: "tokens:write",
      summary: "Issue a token; its secret is shown only once",
      tag,
      body: TokenCreate,
      status: 201,
    },
    async ({ call, body }) => {
      const { caller } = call;
      if (caller.agent && body.agent !== caller.agent.name) {
        throw new Problem(
          "agent_forbidden",
          `This token acts as ${caller.agent.name} and can only issue tokens for that agent.`,
        );
      }
      if (body.agent !== undefined) call.about({ agent: body.agent });
      const agent = body.agent === undefined ? null : await agents.get(caller.workspaceId, body.agent);
      const scopes = scopesOf(body.scopes, agent !== null);
      const { person, role } = holderOf(caller, body);
      const expiresIn = body.expires_in === undefined ? null : duration("/expires_in", body.expires_in);
      requireIssuable(caller, { agentId: agent?.id ?? null, scopes, person, role });
      const issued = await call.commit(async (tx, record) => {
        const { until: notAfter } = await callerEnd(tx, caller, clock.now());
        if (expiresIn !== null && clock.now() + expiresIn > notAfter) {
          throw invalidField("/expires_in", `would outlive this token, which expires ${timestamp(notAfter)}`);
        }
        if ((await countTokens(tx, caller.workspaceId)) >= TOKEN_LIMIT) {
          throw new Problem(
            "token_limit",
            `A workspace can have at most ${TOKEN_LIMIT} tokens. Revoke one that is no longer used, for example one that has expired.`,
          );
        }
        const made = await tokens.issue(tx, caller.workspaceId, caller.actor, {
          name: body.name,
          agent,
          scopes,
          toolsMode: body.tools_mode,
          person,
          role,
          expiresIn,
          notAfter,
        });
        await record({ detail: issueOf(made.token) });
        return made;
      });
      return {
        status: 201,
        body: viewIssued(issued),
        headers: { Location: `/v1/tokens/${issued.token.id}` },
      };
    },
  );

  const rotate = endpoint(
    endpoints,
    {
      action: "token.rotate",
      scope: "tokens:write",
      summary: "Give a token a new secret; the old one works for the grace period",
      tag,
      body: TokenRotate,
      bodyOptional: true,
      status: 200,
    },
    async ({ call, params: { id = "" }, body }) => {
      const { caller } = call;
      const token = await manageable(caller, id);
      requireRotatable(caller, token);
      const grace = body.grace === undefined ? 0 : duration("/grace", body.grace);
      call.about({ detail: { token: id, grace_ms: grace } });
      const issued = await call.commit(async (tx) => {
        const { until: notAfter, isReplaced } = await callerEnd(tx, caller, clock.now());
        if (isReplaced && tokenIdOf(caller) === id) {
          throw invalidField(
            "/id",
            "belongs to this token, and the secret or session in use ends with the grace period of its last rotation",
          );
        }
        if ((token.expiresAt ?? Number.POSITIVE_INFINITY) > notAfter) {
          throw invalidField(
            "/id",
            `names a token that outlives this one, which expires ${timestamp(notAfter)}`,
          );
        }
        const rotated = await tokens.rotate(tx, caller.workspaceId, id, grace);
        call.about({ detail: { token: id, grace_ms: grace, rotation: rotated.rotations } });
        return rotated;
      });
      return { status: 200, body: viewIssued(issued) };
    },
  );

  const revoke = endpoint(
    endpoints,
    {
      action: "token.revoke",
      urgent: true,
      scope: "tokens:write",
      summary: "Revoke a token immediately",
      tag,
      status: 204,
    },
    async ({ call, params: { id = "" } }) => {
      const { scopes } = await manageable(call.caller, id);
      requireHeld(call.caller, scopes);
      call.about({ detail: { token: id } });
      await call.commit((tx) => tokens.revoke(tx, call.caller.workspaceId, id));
      return { status: 204 };
    },
  );

  /**
   * A token acting as an agent manages only that agent's tokens.
   * @throws Problem 403 `agent_forbidden`, 404 `not_found`
   */
  async function manageable(caller: Caller, id: string): Promise<Token> {
    const token = await tokens.get(caller.workspaceId, id);
    // Not by name, because an earlier agent may have had the same name.
    if (caller.agent && token.agentId !== caller.agent.id) {
      throw new Problem(
        "agent_forbidden",
        `This token acts as ${caller.agent.name} and can only manage its own tokens.`,
      );
    }
    return token;
  }

  return new Elysia({ prefix: "/v1/tokens" })
    .get("", list.handle, list.hook)
    .post("", issue.handle, issue.hook)
    .delete("/:id", revoke.handle, revoke.hook)
    .post("/:id/rotate", rotate.handle, rotate.hook);
}

/**
 * The detail of the entry for an issued token: who can do what with it, and until when. It later shows who could
 * oversee an agent.
 */
function issueOf({ id, name, person, role, scopes, expiresAt }: Token): Detail {
  return {
    token: id,
    name: redact(name),
    person: person === null ? undefined : redact(person),
    role: role === null ? undefined : redact(role),
    scopes: scopes.join(" "),
    expires_at: optionalTimestamp(expiresAt) ?? undefined,
  };
}

function scopesOf(given: readonly string[] | undefined, hasAgent: boolean): readonly string[] {
  if (given === undefined) {
    if (hasAgent) return AGENT_TOKEN_SCOPES;
    throw invalidField("/scopes", "is required for a token without an agent");
  }
  for (const [index, scope] of given.entries()) {
    if (!isScope(scope)) throw invalidField(`/scopes/${index}`, `${JSON.stringify(scope)} is not a scope`);
  }
  return [...new Set(given)];
}

function duration(path: string, text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw invalidField(path, "must be a duration such as 90d, 12h or 10m");
  if (ms > LONGEST_MS) throw invalidField(path, "must not be longer than 36500d");
  return ms;
}

/** A token as clients read it (contract, section 2). */
export function viewToken(token: Token) {
  return {
    id: token.id,
    name: token.name,
    agent: token.agent,
    scopes: token.scopes,
    // Beyond the contract's fields, included only if it is not the default.
    ...(token.toolsMode === "all" ? {} : { tools_mode: token.toolsMode }),
    person: token.person,
    role: token.role,
    expires_at: optionalTimestamp(token.expiresAt),
    created_by: token.createdBy,
    created_at: timestamp(token.createdAt),
    last_used_at: optionalTimestamp(token.lastUsedAt),
  };
}

export function viewIssued({ token, secret }: IssuedTokenSecret) {
  return { ...viewToken(token), secret };
}
