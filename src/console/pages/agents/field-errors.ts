import type { ApiProblem } from "../../api/problem.ts";
import { linesOf } from "../../parts/field.tsx";

/** The parts whose errors are shown at a field of the form. */
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

/** Patterns in words, for readers who do not know regular expressions. */
const PATTERNS: Readonly<Record<string, string>> = {
  "/name":
    "must be lower-case letters, digits, - and _, starting with a letter or digit, at most 63 characters",
  "/memory_scope":
    "is not a path: use lower-case letters, digits, . _ and -, separated by /, without / at the start or end",
};

export function hasField(path: string): boolean {
  return FIELDS.some((field) => path === field || path.startsWith(`${field}/`));
}

function inWords(field: string, message: string): string {
  return message.startsWith("must match pattern") ? (PATTERNS[field] ?? message) : message;
}

/** The server's error for a field. */
export function errorAt(problem: ApiProblem | null, path: string): string | undefined {
  const message = problem?.fields.get(path);
  return message && inWords(path, message);
}

/**
 * The server's error for a list: the errors of its entries, named by the entry; otherwise the error of the whole
 * list.
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
