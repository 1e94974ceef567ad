import { Elysia } from "elysia";
import Type from "typebox";
import type { SignInLinks } from "../../access/sign-in-links.ts";
import type { Tokens } from "../../access/tokens.ts";
import { timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { type Door, endpoint } from "../endpoint.ts";
import { requireOperator } from "./workspace.ts";

export interface ConsoleLinkRouteParts {
  readonly links: SignInLinks;
  readonly tokens: Pick<Tokens, "newestAdmin">;
  /** The server's URL as clients see it, without a slash at its end; null where it listens nowhere. */
  url(): string | null;
}

/** The address that signs a browser in: the secret stands behind the `#`, which browsers send to nobody. */
export function consoleLink(url: string, secret: string): string {
  return `${url}/console#link=${secret}`;
}

/** One-time links into the console: for the node's operator alone. Not in the contract, and not in the document. */
export function consoleLinkRoutes(door: Door, { links, tokens, url }: ConsoleLinkRouteParts) {
  const create = endpoint(
    door,
    {
      action: "session.link",
      scope: "tokens:write",
      summary: "Make a link that signs a browser in to the console, once, within 30 minutes",
      tag: "Operator",
      body: Type.Object({}, { additionalProperties: false }),
      bodyOptional: true,
      status: 201,
    },
    async ({ call }) => {
      const { workspaceId, workspace, actor } = call.caller;
      requireOperator(actor);
      const base = url();
      if (base === null) throw new Problem("not_found", "No server is running that a browser could reach.");
      const token = await tokens.newestAdmin(workspaceId);
      if (!token) {
        throw new Problem(
          "not_found",
          `The workspace ${workspace} has no admin token that a browser could be signed in with. Make one with: gatehouse token create --name admin --scope admin --workspace ${workspace}`,
        );
      }
      const { secret, expiresAt } = links.create({ workspaceId, tokenId: token.id });
      call.about({ detail: { token: token.id, expires_at: timestamp(expiresAt) } });
      return {
        status: 201,
        body: { url: consoleLink(base, secret), expires_at: timestamp(expiresAt) },
        headers: { "cache-control": "no-store" },
      };
    },
  );
  return new Elysia({ prefix: "/operator/console-links" }).post("", create.handle, {
    ...create.hook,
    detail: { hide: true },
  });
}
