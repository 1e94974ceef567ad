import type { ApiProblem } from "../../api/problem.ts";
import { linesOf } from "../../parts/field.tsx";

/** The parts of an agent that have a field in the form, which shows what is wrong with them. */
const FIELDS = [
  "/name",
  "/owner",
  "/description",
  "/instructions",
  "/memory_scope",
  "/tier_policy/tiers",
  "/tier_policy/models/allow",
  "/tier_policy/models/deny",
  "/tools",
  "/approvals",
  "/approvals_required",
  "/max_steps",
  "/budget/credits_per_day",
];

/** What a pattern asks for, for who does not read regular expressions. */
const PATTERNS: Readonly<Record<string, string>> = {
  "/name": "must be small letters, digits, - and _, beginning with a letter or a digit, at most 63",
  "/memory_scope":
    "is no path: small letters, digits, . _ and -, in parts that / separates, with none at the beginning or the end",
};

export function hasField(path: string): boolean {
  return FIELDS.some((field) => path === field || path.startsWith(`${field}/`));
}

function inWords(field: string, message: string): string {
  return message.startsWith("must match pattern") ? (PATTERNS[field] ?? message) : message;
}

/** What the server has against a field. */
export function errorAt(problem: ApiProblem | null, path: string): string | undefined {
  const message = problem?.fields.get(path);
  return message && inWords(path, message);
}

/**
 * What the server has against a list: against each entry by the entry itself, or else against the list as a whole, of which
 * it says little where it has named an entry.
 */
export function errorInList(problem: ApiProblem | null, path: string, text: string): string | undefined {
  if (problem === null) return undefined;
  const entries = linesOf(text);
  const found = [...problem.fields].flatMap(([at, message]) => {
    const index = at.startsWith(`${path}/`) ? Number(at.slice(path.length + 1)) : Number.NaN;
    if (!Number.isInteger(index)) return [];
    return [`${entries[index] ?? `Entry ${index + 1}`} ${inWords(path, message)}`];
  });
  return found.length > 0 ? found.join("; ") : errorAt(problem, path);
}
