import { Elysia } from "elysia";
import Type from "typebox";
import type { SignInLinks } from "../../access/sign-in-links.ts";
import type { Tokens } from "../../access/tokens.ts";
import { timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import type { Config } from "../../config/config.ts";
import { listenUrl } from "../../config/listen.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { requireOperator } from "./workspace.ts";

export interface ConsoleLinkRouteParts {
  readonly links: SignInLinks;
  readonly tokens: Pick<Tokens, "newestAdmin">;
  /** The base URL of the console for browsers (see `consoleUrl`); null if the server does not listen. */
  url(): string | null;
}

/**
 * The base URL of the console for browsers, without a trailing slash: `public_url`, else the address listened on. The
 * console's addresses start at the root of a host, so a `public_url` with a path cannot lead to it.
 */
export function consoleUrl(
  { publicUrl, listen }: Pick<Config, "publicUrl" | "listen">,
  port: number,
): string {
  if (publicUrl !== undefined && new URL(publicUrl).pathname === "/") return publicUrl;
  return listenUrl({ host: listen.host, port });
}

/** The URL that signs a browser in. The secret follows the `#`, which browsers never send. */
export function consoleLink(url: string, secret: string): string {
  return `${url}/console#link=${secret}`;
}

/** One-time links to the console, only for the node's operator. Neither in the contract nor in the API document. */
export function consoleLinkRoutes(endpoints: EndpointContext, { links, tokens, url }: ConsoleLinkRouteParts) {
  const create = endpoint(
    endpoints,
    {
      action: "session.link",
      scope: "tokens:write",
      summary: "Create a one-time link that signs a browser in to the console, valid for 30 minutes",
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
          `The workspace ${workspace} has no admin token for signing in a browser: it must not name a person or act as an agent. Create one with: gatehouse token create --name admin --scope admin --workspace ${workspace}`,
        );
      }
      const { id: tokenId, secretHash } = token;
      const expiresAt = links.expiry();
      const { secret } = await call.commit(async (tx, record) => {
        // Recorded first, because the session's entry refers to this entry.
        const ledgerSeq = await record({ detail: { token: tokenId, expires_at: timestamp(expiresAt) } });
        return links.create(tx, { workspaceId, tokenId, secretHash }, { actor, ledgerSeq }, expiresAt);
      });
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
