import type { CallOptions } from "../../../api/client.ts";
import type { ApiProblem } from "../../../api/problem.ts";
import { linesOf } from "../../../parts/field.tsx";

/** A token as entered in the form, unchecked. */
export interface TokenDraft {
  readonly name: string;
  /** Empty: no agent. */
  readonly agent: string;
  /** Whether a token of an agent gets the default scopes or chosen ones. */
  readonly grants: "default" | "chosen";
  readonly scopes: ReadonlySet<string>;
  /** Tool patterns, one on each line. */
  readonly tools: string;
  /** One of `LIFETIMES`. */
  readonly lifetime: string;
  readonly otherLifetime: string;
  readonly person: string;
  readonly role: string;
  readonly toolsMode: "all" | "search";
}

type TokenBody = CallOptions<"POST /v1/tokens">["body"];

export const LIFETIMES: readonly (readonly [string, string])[] = [
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "One year"],
  ["never", "Never"],
  ["other", "After a different time"],
];

export function newDraft(agent: string): TokenDraft {
  return {
    name: "",
    agent,
    grants: "default",
    scopes: new Set(),
    tools: "",
    lifetime: "90d",
    otherLifetime: "",
    person: "",
    role: "",
    toolsMode: "all",
  };
}

export function isSameDraft(one: TokenDraft, other: TokenDraft): boolean {
  const textOf = (draft: TokenDraft) => JSON.stringify({ ...draft, scopes: [...draft.scopes].sort() });
  return textOf(one) === textOf(other);
}

export function takesDefault({ agent, grants }: TokenDraft): boolean {
  return agent !== "" && grants === "default";
}

/** The request body. Only empty fields are left out; the server checks the rest. */
export function bodyOf(draft: TokenDraft): TokenBody {
  const { name, agent, lifetime, otherLifetime, person, role, toolsMode } = draft;
  const expiry = lifetime === "other" ? otherLifetime.trim() : lifetime;
  const scopes = scopesOf(draft);
  return {
    name: name.trim(),
    ...(agent === "" ? {} : { agent }),
    ...(takesDefault(draft) || (agent === "" && scopes.length === 0) ? {} : { scopes }),
    ...(expiry === "never" ? {} : { expires_in: expiry }),
    ...(person.trim() === "" ? {} : { person: person.trim() }),
    ...(role.trim() === "" ? {} : { role: role.trim() }),
    ...(toolsMode === "all" ? {} : { tools_mode: toolsMode }),
  };
}

/** The ticked scopes, then the tool patterns. */
function scopesOf({ scopes, tools }: TokenDraft): string[] {
  return [...scopes, ...linesOf(tools).map((glob) => `tools:${glob}`)];
}

/** The server's errors for the ticked scopes and for the tool patterns. */
export function scopeErrors(
  draft: TokenDraft,
  problem: ApiProblem | null,
): { readonly scopes: string | undefined; readonly tools: string | undefined } {
  const errors = { scopes: problem?.fields.get("/scopes"), tools: undefined as string | undefined };
  for (const [path, message] of problem?.fields ?? []) {
    const index = /^\/scopes\/(\d+)$/.exec(path)?.[1];
    if (index === undefined) continue;
    if (Number(index) < draft.scopes.size) errors.scopes ??= message;
    else errors.tools ??= message;
  }
  return errors;
}
