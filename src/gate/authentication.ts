import type { Caller } from "../access/caller.ts";
import { ADMIN_SCOPES } from "../access/scopes.ts";
import type { Sessions } from "../access/sessions.ts";
import type { LinkedToken, SignInLinks } from "../access/sign-in-links.ts";
import type { Tokens } from "../access/tokens.ts";
import type { Workspace, Workspaces } from "../access/workspaces.ts";
import { Problem } from "../base/errors.ts";
import type { Credential } from "./gate.ts";
import { unauthenticated } from "./rights.ts";

export interface AuthenticationParts {
  readonly tokens: Pick<Tokens, "authenticate" | "lastKnown" | "callerOf">;
  readonly sessions: Pick<Sessions, "authenticate" | "lastKnown">;
  readonly links: Pick<SignInLinks, "find">;
  readonly workspaces: Pick<Workspaces, "find" | "findStored">;
}

export interface Authentication {
  /**
   * The caller with these credentials. Undefined if they are not valid.
   * @throws Problem if there are none, or they have no effect here
   */
  authenticate(credential: Credential): Caller | undefined | Promise<Caller | undefined>;
  /**
   * The caller as last read, for a stop while the store cannot be read. Undefined if only the store knows the caller.
   */
  lastKnown(credential: Credential): Caller | undefined;
}

export function createAuthentication({
  tokens,
  sessions,
  links,
  workspaces,
}: AuthenticationParts): Authentication {
  // Avoid needless awaits here: each costs a busy server about 1 µs per call.
  function authenticate(credential: Credential): Caller | undefined | Promise<Caller | undefined> {
    switch (credential.kind) {
      case "bearer":
        return tokens.authenticate(credential.secret);
      case "session":
        return sessions.authenticate(credential.secret);
      case "link": {
        const linked = links.find(credential.secret);
        return linked instanceof Promise ? linked.then(linkedCaller) : linkedCaller(linked);
      }
      case "operator": {
        const { user, workspace: name } = credential;
        const workspace = workspaces.find(name);
        return workspace
          ? operator(user, workspace)
          : workspaces.findStored(name).then((stored) => {
              if (!stored) throw new Problem("not_found", `There is no workspace named ${name}.`);
              return operator(user, stored);
            });
      }
      case "foreign_page":
        throw new Problem(
          "origin_forbidden",
          "A page from another origin may not act here. If it is this server's own page, set public_url to its address.",
        );
      case "malformed":
        throw unauthenticated("unauthenticated", "The Authorization header must be: Bearer <token>.");
      case "none":
        throw unauthenticated("unauthenticated", "Send the header Authorization: Bearer <token>.");
    }
  }

  function linkedCaller(linked: LinkedToken | undefined): Promise<Caller | undefined> | undefined {
    return linked && tokens.callerOf(linked.workspaceId, linked.tokenId);
  }

  function lastKnown(credential: Credential): Caller | undefined {
    if (credential.kind === "bearer") return tokens.lastKnown(credential.secret);
    return credential.kind === "session" ? sessions.lastKnown(credential.secret) : undefined;
  }

  return { authenticate, lastKnown };
}

/** The operator on this machine, who may do everything in the workspace. */
function operator(user: string, { id, name }: Workspace): Caller {
  return {
    ...{ workspaceId: id, workspace: name, actor: `user:${user}`, name: user, agent: null },
    ...{ scopes: ADMIN_SCOPES, toolsMode: "all", person: user, role: null },
  };
}
